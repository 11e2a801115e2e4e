"""Lists what needs attention in system logs: break-ins, unknown formats, bursts and silences. Pure.

The concerns are ordered by urgency. Only a few concerns of each kind are listed; the card on the
page lists more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from barnabas.counted import counted
from barnabas_formats.format import RAW
from barnabas_pipeline.logs import phrases
from barnabas_pipeline.logs.figures import Figures
from barnabas_pipeline.logs.incidents import Incident
from barnabas_pipeline.logs.intrusions import Intruder
from barnabas_pipeline.logs.logins import REPORTS, SSHD
from barnabas_pipeline.page.attention import MOST, Concern, usual
from barnabas_pipeline.page.words import percent
from barnabas_pipeline.rejections import are_many, examples

GUESSING: Final = "SSH logins by guessing"
BURSTS: Final = "Bursts"
SILENCES: Final = "Silent components"
FORMATS: Final = "Formats found"
DEAD_LETTERS: Final = "Dead letters"


class Lines(NamedTuple):
    """Describes the entries that show a concern. A missing property does not matter."""

    since: datetime | None = None
    until: datetime | None = None  # excluded
    templates: Sequence[str] = ()
    components: Sequence[str] = ()
    formats: Sequence[str] = ()
    word: str = ""
    """A text that occurs in all of these entries."""


class Found(NamedTuple):
    """A concern, and the entries that show it, or None if it has no entries."""

    concern: Concern
    lines: Lines | None = None


def failed_logins(figures: Figures, outcomes: Collection[str]) -> Lines | None:
    """Describe the entries of failed logins, or return None if there are none.

    `outcomes`: those that are counted as failures.
    """
    reports = [report for outcome, report in REPORTS.items() if outcome in outcomes]
    ids = [row.id for row in figures.templates if any(each.search(row.text) for each in reports)]
    return Lines(templates=ids, components=_sshd(figures)) if ids else None


def break_in(figures: Figures, intruder: Intruder) -> Lines:
    """Describe the entries about an address from which someone broke in."""
    # Of a masked address, only the network occurs in the entries.
    word = intruder.address.removesuffix("x")
    return Lines(since=intruder.first, components=_sshd(figures), word=word)


def _sshd(figures: Figures) -> list[str]:
    names = [row.component for row in figures.components if row.component.startswith(SSHD)]
    return [*dict.fromkeys(names)]


def concerns(figures: Figures) -> list[Concern]:
    """Return what needs attention, the most urgent first."""
    return [each.concern for each in found_concerns(figures)]


def found_concerns(figures: Figures) -> list[Found]:
    """Return what needs attention, and where it can be seen, the most urgent first."""
    return [
        *_break_ins(figures),
        *_rejected(figures),
        *_raw(figures),
        *_bursts(figures),
        *_silences(figures),
    ]


def _break_ins(figures: Figures) -> Iterator[Found]:
    entered = [each for each in figures.intruders if each.entered_as]
    for each in entered[:MOST]:
        where = f" on {', '.join(each.hosts)}" if each.hosts else ""
        concern = Concern(
            f"Break-in{where}: {each.address} logged in as {', '.join(each.entered_as)}",
            f"after {counted(each.failures, 'failed login')},"
            f" {phrases.between(each.first, each.last)}",
            GUESSING,
            is_urgent=True,
        )
        yield Found(concern, break_in(figures, each))
    if len(entered) > MOST:
        more = counted(len(entered) - MOST, "more address", "more addresses")
        yield Found(Concern(f"Break-ins from {more}", "", GUESSING, is_urgent=True))


def _rejected(figures: Figures) -> Iterator[Found]:
    rejected, letters = figures.accounts.dead_letters, figures.dead_letters
    if not letters:
        return
    of = figures.accounts.valid + rejected
    many = are_many(rejected, of)
    share = f"{percent(rejected, of)} of the records" if many else counted(rejected, "record")
    concern = Concern(
        f"{share} {'was' if rejected == 1 and not many else 'were'} rejected",
        f"{rejected:,} of {of:,} are not included in the figures below, because they cannot be"
        " parsed",
        DEAD_LETTERS,
        is_urgent=many,
        reasons=[(each.reason, each.lines) for each in letters[:MOST]],
        examples=[(place, text) for _, place, text in examples(letters)],
    )
    yield Found(concern)


def _raw(figures: Figures) -> Iterator[Found]:
    raw = figures.raw_lines
    if not raw:
        return
    many = are_many(raw, figures.lines)
    share = (
        f"{percent(raw, figures.lines)} of the entries match"
        if many
        else f"{counted(raw, 'entry', 'entries')} {'matches' if raw == 1 else 'match'}"
    )
    concern = Concern(
        f"{share} no known format",
        f"{raw:,} of {figures.lines:,} are kept unchanged, without a level, a component and a"
        " time of their own; describe them with a pattern in a formats file",
        FORMATS,
        is_urgent=many,
        examples=figures.raw_samples[:MOST],
    )
    yield Found(concern, Lines(formats=[RAW]))


def _bursts(figures: Figures) -> Iterator[Found]:
    by_template: dict[str, list[Incident]] = {}
    for each in figures.incidents:
        by_template.setdefault(each.bursts[0].template, []).append(each)
    # Several bursts of one template are a single concern.
    groups = [*by_template.values()]
    for group in groups[:MOST]:
        worst = group[0]  # the burst with the greatest excess
        lines = counted(sum(each.lines for each in group), "entry", "entries")
        when = f"{phrases.between(worst.begin, worst.end)} in {worst.format}, {usual_of(worst)}"
        concern = Concern(
            f"Burst of {lines}" if len(group) == 1 else f"{len(group):,} bursts of {lines} in all",
            when if len(group) == 1 else f"the largest {when}",
            BURSTS,
            examples=[("", phrases.short(figures.texts[worst.bursts[0].template]))],
        )
        yield Found(concern, _lines_of(worst))
    if more := sum(map(len, groups[MOST:])):
        yield Found(Concern(f"{counted(more, 'more burst')}", "", BURSTS))


def _lines_of(incident: Incident) -> Lines:
    templates = dict.fromkeys(each.template for each in incident.bursts)
    return Lines(incident.begin, incident.end, [*templates])


def _silences(figures: Figures) -> Iterator[Found]:
    for each in figures.silences[:MOST]:
        concern = Concern(
            f"{each.component} fell silent",
            f"{phrases.long(each.silent)} before the end of its log ({each.format}): its last entry"
            f" is from {phrases.when(each.last)}",
            SILENCES,
        )
        yield Found(concern, Lines(components=[each.component], formats=[each.format]))
    if len(figures.silences) > MOST:
        more = counted(len(figures.silences) - MOST, "more component")
        yield Found(Concern(f"{more} fell silent", "", SILENCES))


def usual_of(incident: Incident) -> str:
    """Return a text that states the usual number of entries for the incident's largest burst."""
    worst = incident.bursts[0]
    return usual(worst.usual_a_minute * worst.minutes)
