"""Turns what needs attention in system logs into concerns whose links show their entries. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from barnabas_pipeline.logs.attention import Lines, found_concerns
from barnabas_pipeline.logs.figures import Figures
from barnabas_pipeline.page import attention
from barnabas_pipeline.pages.filters import MOST_CHARACTERS, MOST_VALUES, Period, query
from barnabas_pipeline.pages.shapes import Concern
from barnabas_pipeline.pages.shown_text import shown

_SECOND: Final = timedelta(seconds=1)


def concerns(figures: Figures, kept: Iterable[tuple[str, str]] = ()) -> list[Concern]:
    """Return what needs attention, the most urgent first.

    `kept`: filters of which the figures are and which all links keep.
    """
    return [
        Concern(
            title=shown(each.concern.title),
            about=shown(each.concern.about),
            is_urgent=each.concern.is_urgent,
            link="" if each.lines is None else link(each.lines, kept),
            examples=_examples(each.concern),
        )
        for each in found_concerns(figures)
    ]


def link(lines: Lines, kept: Iterable[tuple[str, str]] = ()) -> str:
    """Return the URL parameters that show these entries, or "" if filters cannot express them."""
    found: dict[str, list[str]] = {}
    for name, value in kept:
        found.setdefault(name, []).append(value)
    if lines.since is not None:
        found["since"] = [_second(lines.since)]
    if lines.until is not None:
        found["until"] = [_second(lines.until)]
    for name, values in (
        ("template", lines.templates),
        ("component", lines.components),
        ("format", lines.formats),
    ):
        if values:
            found[name] = [*values]
    if lines.word:
        # No phrase can contain a quote.
        part = max(lines.word.split('"'), key=len)
        found["words"] = [f'"{part}"']
    for values in found.values():
        if len(values) > MOST_VALUES or max(map(len, values)) > MOST_CHARACTERS:
            return ""
    return query(found)


def period_pairs(period: Period) -> list[tuple[str, str]]:
    """Return a period as URL parameters."""
    ends = (("since", period.since_us), ("until", period.until_us))
    return [
        (name, _second(datetime.fromtimestamp(at_us // 1_000_000, UTC)))
        for name, at_us in ends
        if at_us is not None
    ]


def _second(at: datetime) -> str:
    """Return the full second at or before this time, as filters read it."""
    at = at.replace(microsecond=0)
    return (at.astimezone(UTC) if at.tzinfo else at).replace(tzinfo=None).isoformat()


def _examples(concern: attention.Concern) -> list[str]:
    reasons = [f"{count:,} {reason}" for reason, count in concern.reasons]
    texts = [f"{place}: {text}" if place else text for place, text in concern.examples]
    return [shown(each) for each in (*reasons, *texts)]
