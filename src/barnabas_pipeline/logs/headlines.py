"""Defines the figures at the top of the system log page.

The page, its files and the terminal all use these definitions. Each can be recomputed from the
tables on the page and in its files, as a test does.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.counted import counted
from barnabas_pipeline.logs.figures import Figures
from barnabas_pipeline.page import words

ERRORS: Final = ("ERROR", "FATAL")


class Headline(NamedTuple):
    name: str  # in the files
    total: int
    label: str
    about: str


class Numbers(NamedTuple):
    """The headline numbers. The docstring of each number names the column that it sums up or the
    rows that it counts.
    """

    entries: int
    """Records that became rows of `entries`: the sum of `entries` in levels.csv."""
    formats: int
    """Known formats of these records, excluding `raw`: the formats in levels.csv."""
    hosts: int
    """Hosts that wrote entries: the rows of hosts.csv."""
    errors: int
    """Entries of level ERROR or FATAL: their `entries` in levels.csv."""
    templates: int
    """Rows of templates.csv."""
    new_templates: int
    """Rows of new_templates.csv."""
    bursts: int
    """Bursts, where simultaneous bursts count as one: the numbers in bursts.csv."""
    silent_components: int
    """Rows of silent_components.csv."""
    components: int
    """Components of each format: rows of components.csv."""
    failed_logins: int
    """Refused passwords and keys: `failed` in ssh_logins.csv."""
    failed_addresses: int
    """Addresses with at least one failed login: rows of ssh_logins.csv in which `failed` is not
    0."""
    accepted_logins: int
    """Accepted attempts: `accepted` in ssh_logins.csv."""
    break_ins: int
    """Addresses that guessed passwords and then logged in: rows of ssh_guessing.csv with
    `entered_as`.
    """
    guessing_addresses: int
    """Rows of ssh_guessing.csv."""
    raw_entries: int
    """Entries that match no known format: `entries` of raw in levels.csv."""


def numbers(figures: Figures) -> Numbers:
    """Return the numbers of these figures."""
    return Numbers(
        entries=figures.lines,
        formats=len(figures.known_systems),
        hosts=len(figures.hosts),
        errors=sum(each.by_level.get(level, 0) for each in figures.systems for level in ERRORS),
        templates=len(figures.templates),
        new_templates=len(figures.new_templates),
        bursts=len(figures.incidents),
        silent_components=len(figures.silences),
        components=len(figures.components),
        failed_logins=sum(each.failed for each in figures.logins),
        failed_addresses=sum(each.failed > 0 for each in figures.logins),
        accepted_logins=sum(each.accepted for each in figures.logins),
        break_ins=sum(bool(each.entered_as) for each in figures.intruders),
        guessing_addresses=len(figures.intruders),
        raw_entries=figures.raw_lines,
    )


def headlines(figures: Figures) -> list[Headline]:
    """Return the headlines, in page order."""
    of = numbers(figures)
    share = words.percent(of.errors, of.entries)
    rows = (
        (
            "entries",
            "log entries" if of.entries != 1 else "log entry",
            f"{counted(of.formats, 'format')}, {counted(of.hosts, 'host')}",
        ),
        (
            "errors",
            "errors" if of.errors != 1 else "error",
            f"{share} of the entries, ERROR or FATAL",
        ),
        (
            "templates",
            "templates" if of.templates != 1 else "template",
            f"{of.new_templates:,} of them new",
        ),
        ("bursts", "bursts" if of.bursts != 1 else "burst", "far more entries than usual"),
        (
            "silent_components",
            "silent components" if of.silent_components != 1 else "silent component",
            f"of {of.components:,}",
        ),
        (
            "failed_logins",
            "failed SSH logins" if of.failed_logins != 1 else "failed SSH login",
            f"from {_addresses(of.failed_addresses)}; {of.accepted_logins:,} accepted",
        ),
        (
            "break_ins",
            "break-ins by guessing" if of.break_ins != 1 else "break-in by guessing",
            f"{_addresses(of.guessing_addresses)} tried",
        ),
        (
            "raw_entries",
            "raw entries" if of.raw_entries != 1 else "raw entry",
            "of no known format",
        ),
    )
    values = of._asdict()
    return [Headline(name, values[name], label, about) for name, label, about in rows]


def _addresses(count: int) -> str:
    return counted(count, "address", "addresses")


def summary(figures: Figures) -> list[tuple[str, str]]:
    """Return a short summary of a run for the terminal, as (label, text) pairs."""
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
        failed += f" from {_addresses(of.failed_addresses)}"
        guessing = f"{of.guessing_addresses:,} guessed passwords, {of.break_ins or 'none'} got in"
        lines.append(("ssh", f"{failed}; {guessing}"))
    if figures.dead_letters:
        reasons = ", ".join(f"{each.lines:,} {each.reason}" for each in figures.dead_letters)
        lines.append(("rejected", reasons))
    return lines
