"""Lists what needs attention in an access log: rejected lines, server errors and silences. Pure.

The usual number of server errors in an interval is the mean over all other intervals. As with
bursts of messages, a burst must contain at least ten errors, at least five times the mean, and at
least the mean plus six standard deviations plus one. A silence is a gap in which a hundred hits
would have been expected, at the rate before or after the gap, whichever is lower. A quiet night is
therefore not a silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from math import sqrt
from typing import Final, NamedTuple

from barnabas.counted import counted
from barnabas_pipeline.accounts import Accounts, DeadLetters
from barnabas_pipeline.behaviour.figures import Figures
from barnabas_pipeline.behaviour.timeline import Timeline
from barnabas_pipeline.page import words
from barnabas_pipeline.page.attention import MOST, Concern, usual
from barnabas_pipeline.rejections import are_many, examples

RESPONSES: Final = "Responses"
TRAFFIC: Final = "Traffic"
DEAD_LETTERS: Final = "Dead letters"

_LEAST_ERRORS: Final = 10
_LEAST_TIMES: Final = 5
_DEVIATIONS: Final = 6
_LEAST_INTERVALS: Final = 6
_LEAST_MISSING: Final = 100
_NEIGHBOURS: Final = 6  # intervals before and after a gap


class ErrorBurst(NamedTuple):
    """An interval with far more server errors than usual; `at` is in local time."""

    at: datetime
    errors: int
    hits: int
    usual: float


class Gap(NamedTuple):
    """A period without any hits, in local time."""

    begin: datetime
    end: datetime
    missing: float


def concerns(figures: Figures) -> list[Concern]:
    """Return what needs attention, the most urgent first."""
    return concerns_of(figures.accounts, figures.dead_letters, figures.timeline)


def concerns_of(
    accounts: Accounts, letters: Sequence[DeadLetters], timeline: Timeline
) -> list[Concern]:
    """Return what needs attention in these figures, the most urgent first."""
    return [*_rejected(accounts, letters), *_errors(timeline), *_silences(timeline)]


def _rejected(accounts: Accounts, letters: Sequence[DeadLetters]) -> Iterator[Concern]:
    rejected = accounts.dead_letters
    if not letters:
        return
    known = accounts.valid + rejected
    many = are_many(rejected, known)
    share = f"{words.percent(rejected, known)} of the lines" if many else counted(rejected, "line")
    is_one = rejected == 1
    yield Concern(
        f"{share} {'was' if is_one and not many else 'were'} rejected",
        f"{rejected:,} of {counted(known, 'line')} {'is' if is_one else 'are'} not included in the"
        f" figures below, because {'it does' if is_one else 'they do'} not clearly match a format"
        " that barnabas formats list shows",
        DEAD_LETTERS,
        is_urgent=many,
        reasons=[(each.reason, each.lines) for each in letters],
        examples=[(f"{place}: {reason}", text) for reason, place, text in examples(letters)],
    )


def _errors(timeline: Timeline) -> Iterator[Concern]:
    found = error_bursts(timeline)
    for each in found[:MOST]:
        yield Concern(
            f"{each.errors:,} server errors (5xx)",
            f"{words.span(each.at, timeline.class_step)}:"
            f" {words.percent(each.errors, each.hits)} of the hits, {usual(each.usual)}",
            RESPONSES,
            is_urgent=True,
            span=(each.at, each.at + timeline.class_step),
        )
    if len(found) > MOST:
        more = counted(len(found) - MOST, "more interval")
        yield Concern(f"{more} with many server errors", "", RESPONSES)


def _silences(timeline: Timeline) -> Iterator[Concern]:
    found = gaps(timeline)
    for each in found[:MOST]:
        yield Concern(
            f"No hit for {words.duration((each.end - each.begin).total_seconds())}",
            f"from {words.short_moment(each.begin)} to {words.short_moment(each.end)}, where about"
            f" {each.missing:,.0f} would be expected",
            TRAFFIC,
            span=(each.begin, each.end),
        )
    if len(found) > MOST:
        yield Concern(f"{counted(len(found) - MOST, 'more silence')}", "", TRAFFIC)


def error_bursts(timeline: Timeline) -> list[ErrorBurst]:
    """Return the intervals with far more server errors than usual, most errors first."""
    count = len(timeline.classes)
    if count < _LEAST_INTERVALS:
        return []
    total = sum(classes.get("5xx", 0) for _, classes in timeline.classes)
    found = []
    for at, classes in timeline.classes:
        errors = classes.get("5xx", 0)
        usual = (total - errors) / (count - 1)
        least = max(_LEAST_ERRORS, _LEAST_TIMES * usual, usual + _DEVIATIONS * sqrt(usual) + 1)
        if errors >= least:
            found.append(ErrorBurst(at, errors, sum(classes.values()), usual))
    return sorted(found, key=lambda each: (-each.errors, each.at))


def gaps(timeline: Timeline) -> list[Gap]:
    """Return the silences, most missing hits first."""
    hits = [each.human_hits + each.robot_hits for each in timeline.moments]
    found, begin = [], None
    for at, count in enumerate(hits):
        if not count:
            begin = at if begin is None else begin
            continue
        if begin is not None:
            rate = min(
                _mean(hits[max(0, begin - _NEIGHBOURS) : begin]), _mean(hits[at:][:_NEIGHBOURS])
            )
            missing = rate * (at - begin)
            if missing >= _LEAST_MISSING:
                found.append(Gap(timeline.moments[begin].at, timeline.moments[at].at, missing))
        begin = None
    return sorted(found, key=lambda each: (-each.missing, each.begin))


def _mean(hits: list[int]) -> float:
    return sum(hits) / max(1, len(hits))
