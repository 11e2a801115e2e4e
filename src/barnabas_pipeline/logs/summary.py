"""A run's short summary of system logs."""

from __future__ import annotations

from barnabas.counted import counted
from barnabas_pipeline.logs.figures import Figures
from barnabas_pipeline.logs.headlines import numbers


def summary(figures: Figures) -> list[tuple[str, str]]:
    """The summary: labels and texts."""
    systems = ", ".join(f"{each.lines:,} {each.name}" for each in figures.systems)
    of = numbers(figures)
    lines = [
        ("formats", systems or "none"),
        (
            "templates",
            f"{of.templates:,}, {of.new_templates:,} of them new; {counted(of.errors, 'error')}",
        ),
    ]
    if figures.incidents:
        worst = figures.incidents[0]
        what = figures.texts[worst.bursts[0].template]
        lines.append(("bursts", f"{of.bursts:,}; {worst.begin:%d %b %H:%M} {what[:60]}"))
    if figures.silences:
        names = ", ".join(each.component for each in figures.silences[:3])
        lines.append(("silent", f"{of.silent_components:,}: {names}"))
    if of.failed_logins:
        failed = counted(of.failed_logins, "failed login")
        failed += f" from {counted(of.failed_addresses, 'address', 'addresses')}"
        guessing = f"{of.guessing_addresses:,} guessed passwords, {of.break_ins or 'none'} got in"
        lines.append(("ssh", f"{failed}; {guessing}"))
    if figures.dead_letters:
        reasons = ", ".join(f"{each.lines:,} {each.reason}" for each in figures.dead_letters)
        lines.append(("rejected", reasons))
    return lines
