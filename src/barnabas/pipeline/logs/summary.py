"""A run's short summary of system logs."""

from __future__ import annotations

from barnabas.pipeline.logs.figures import Figures


def summary(figures: Figures) -> list[tuple[str, str]]:
    """The summary: labels and texts."""
    systems = ", ".join(f"{each.lines:,} {each.name}" for each in figures.systems)
    lines = [
        ("formats", systems or "none"),
        (
            "templates",
            f"{len(figures.templates):,}, {len(figures.new_templates):,} of them new;"
            f" {figures.errors:,} lines of errors",
        ),
    ]
    if figures.incidents:
        worst = figures.incidents[0]
        what = figures.texts[worst.bursts[0].template]
        lines.append(
            ("bursts", f"{len(figures.incidents):,}; {worst.begin:%d %b %H:%M} {what[:60]}")
        )
    if figures.silences:
        names = ", ".join(each.component for each in figures.silences[:3])
        lines.append(("silent", f"{len(figures.silences):,}: {names}"))
    if figures.intruders:
        inside = sum(bool(each.entered_as) for each in figures.intruders)
        failures = sum(each.failures for each in figures.intruders)
        what = f"{failures:,} failed logins by {len(figures.intruders):,} addresses"
        lines.append(("ssh", f"{what}; {inside or 'none'} got in"))
    if figures.dead_letters:
        reasons = ", ".join(f"{each.lines:,} {each.reason}" for each in figures.dead_letters)
        lines.append(("rejected", reasons))
    return lines
