"""A run's short summary of user behaviour."""

from __future__ import annotations

from barnabas.pipeline.behaviour.figures import Figures


def summary(figures: Figures) -> list[tuple[str, str]]:
    """The summary: labels and texts."""
    humans, robots = figures.humans, figures.robots
    reasons = ", ".join(f"{letters.lines:,} {letters.reason}" for letters in figures.dead_letters)
    lines = [
        (
            "people",
            f"{humans.visitors:,} visitors, {humans.sessions:,} sessions ({humans.open:,} open),"
            f" {humans.pages:,} page views, bounce rate {humans.bounce_rate:.0%}",
        ),
        (
            "robots",
            f"{robots.visitors:,} visitors, {robots.sessions:,} sessions ({robots.open:,} open),"
            f" {robots.pages:,} page views",
        ),
    ]
    if reasons:
        lines.append(("rejected", reasons))
    return lines
