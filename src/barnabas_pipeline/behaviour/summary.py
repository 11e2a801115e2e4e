"""A run's short summary of user behaviour."""

from __future__ import annotations

from barnabas.counted import counted
from barnabas_pipeline.behaviour.figures import Figures
from barnabas_pipeline.behaviour.visits import SessionFigures


def summary(figures: Figures) -> list[tuple[str, str]]:
    """The summary: labels and texts."""
    humans, robots = figures.humans, figures.robots
    reasons = ", ".join(f"{letters.lines:,} {letters.reason}" for letters in figures.dead_letters)
    lines = [
        (
            "people",
            f"{_visits(humans)}, bounce rate {humans.bounce_rate:.0%}",
        ),
        (
            "robots",
            _visits(robots),
        ),
    ]
    if reasons:
        lines.append(("rejected", reasons))
    return lines


def _visits(of: SessionFigures) -> str:
    return (
        f"{counted(of.visitors, 'visitor')}, {counted(of.sessions, 'session')} ({of.open:,} open),"
        f" {counted(of.pages, 'page view')}"
    )
