"""Formats templates, times and durations for the system log page. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import groupby
from typing import Final

_LONGEST: Final = 200  # characters of a template


def short(text: str) -> str:
    """Return a template for display: shortened, and with each repeated mask printed only once."""
    runs = [(word, len(list(same))) for word, same in groupby(text.split())]
    parts = (
        f"{word} ×{count}" if count > 1 and word.startswith("<") else " ".join([word] * count)
        for word, count in runs
    )
    found = " ".join(parts)
    return found if len(found) <= _LONGEST else f"{found[:_LONGEST]}…"


def when(at: datetime) -> str:
    return f"{at.day} {at:%b %Y, %H:%M}"


def between(begin: datetime, end: datetime) -> str:
    last = f"{end:%H:%M}" if begin.date() == end.date() else when(end)
    return f"{when(begin)} to {last}"


def long(duration: timedelta) -> str:
    """Format the duration with at most two units."""
    minutes = int(duration / timedelta(minutes=1))
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} days {hours % 24} h"
