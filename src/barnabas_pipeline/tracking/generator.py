"""Generates the events of a fictional shop; the same seed yields the same bytes.

Visitors arrive over six weeks, some of them come back, and some of them buy something. As in
reality, a few events arrive late, some are sent twice, and some are invalid.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from math import cos, pi
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from barnabas_pipeline.behaviour.site import ORIGIN, SECTIONS
from barnabas_pipeline.tracking.schemas import PAGE_VIEW

DEFAULT_EVENTS: Final = 100_000
DEFAULT_SEED: Final = 1926

_BEGIN_MS: Final = int(datetime(2026, 3, 2, tzinfo=UTC).timestamp()) * 1_000  # a Monday
_DAY_MS: Final = 86_400_000
_DAYS: Final = 42
_WEEKEND: Final = (2, 3)  # days since Thursday
_EVENTS_A_SESSION: Final = 6.0
_SESSIONS_A_VISITOR: Final = 1.7

_SCREENS: Final = ("390x844", "1920x1080", "412x915", "1440x900", "820x1180")
_LANGUAGES: Final = ("en", "en-GB", "de", "fr", "cs", "pt-BR")
_REFERRERS: Final = (
    "",
    "https://www.google.com/",
    "https://duckduckgo.com/",
    "https://news.ycombinator.com/item?id=40100200",
)
_CAMPAIGNS: Final = (
    "?utm_source=newsletter&utm_medium=email&utm_campaign=spring",
    "?utm_source=mastodon&utm_medium=social&utm_campaign=opening",
)
_PRICES: Final = {"postcards": 4.5, "honey": 9.0, "candles": 12.0, "calendar": 18.0}


def write_events(path: Path, events: int = DEFAULT_EVENTS, seed: int = DEFAULT_SEED) -> None:
    """Write exactly `events` events to `path`, one per line, atomically."""
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("w", encoding="utf-8") as file:
        file.writelines(islice(generate(events, seed), events))
    temporary.replace(path)


def generate(events: int = DEFAULT_EVENTS, seed: int = DEFAULT_SEED) -> Iterator[str]:
    """Yield at least this many lines, each with its line feed, in the order in which they were
    received.
    """
    source = random.Random(seed)
    made: list[dict[str, Any]] = []
    while len(made) < events:
        made += _visitor(source)
    made.sort(key=itemgetter("received", "id"))
    for event in made:
        yield json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n"


def _visitor(source: random.Random) -> Iterator[dict[str, Any]]:
    """Yield the events of all sessions of a visitor."""
    common = {
        "visitor": _identifier(source),
        "screen": source.choice(_SCREENS),
        "language": source.choice(_LANGUAGES),
    }
    is_robot = source.random() < 0.03
    at_ms = _arrival_ms(source)
    sessions = min(12, 1 + int(source.expovariate(1 / (_SESSIONS_A_VISITOR - 1))))
    for number in range(sessions):
        if at_ms > _BEGIN_MS + _DAYS * _DAY_MS:
            return
        for event in _session(source, at_ms, is_first=not number):
            received_ms = event["time"] + source.randrange(20, 900)
            if source.random() < 0.01:  # the device was offline
                received_ms += source.randrange(_DAY_MS)
            event |= common | {"received": received_ms, "bot": is_robot}
            yield event
            if source.random() < 0.005:
                yield event | {"received": received_ms + 1_500}
            if source.random() < 0.002:
                yield event | {"id": "short"}
        at_ms += source.expovariate(1 / (5 * _DAY_MS)) + 3_600_000


def _arrival_ms(source: random.Random) -> float:
    """Return the time of a first visit. Most people come in the evening and at weekends."""
    while True:
        at_ms = _BEGIN_MS + source.random() * _DAYS * _DAY_MS
        hour, weekday = at_ms / 3_600_000 % 24, at_ms // _DAY_MS % 7  # the epoch was a Thursday
        busy = 0.55 + 0.45 * cos(2 * pi * (hour - 19) / 24)
        if source.random() < busy * (1.0 if weekday in _WEEKEND else 0.7):
            return at_ms


def _session(source: random.Random, at_ms: float, *, is_first: bool) -> Iterator[dict[str, Any]]:
    session = _identifier(source)
    query = source.choice(_CAMPAIGNS) if is_first and source.random() < 0.2 else ""
    referrer = source.choice(_REFERRERS) if is_first else ""

    def event(name: str, path: str, **more: Any) -> dict[str, Any]:
        nonlocal at_ms
        at_ms += 1_000 + source.expovariate(1 / 25_000)
        found = {"id": _identifier(source), "time": int(at_ms), "name": name}
        return found | {"url": f"{ORIGIN}{path}", "session": session, **more}

    section = source.choice(sorted(SECTIONS))
    entry = "/" if source.random() < 0.6 else f"{section}/{source.choice(SECTIONS[section])}"
    yield event(PAGE_VIEW, f"{entry}{query}", referrer=referrer)
    for _ in range(int(source.expovariate(1 / (_EVENTS_A_SESSION - 1)))):
        path = f"{section}/{source.choice(SECTIONS[section])}"
        yield event(PAGE_VIEW, path)
        if source.random() < 0.3:
            yield event("click", path, properties={"target": "gallery"})
    if source.random() < 0.25:
        product, price = source.choice(sorted(_PRICES.items()))
        yield event(PAGE_VIEW, f"/shop/{product}")
        yield event(PAGE_VIEW, "/basket")
        if source.random() < 0.6:
            yield event(PAGE_VIEW, "/checkout")
            if source.random() < 0.7:
                yield event("purchase", "/checkout", properties={"value": price, "item": product})
    if source.random() < 0.01:
        yield event("error", "/", properties={"message": "x is undefined"})


def _identifier(source: random.Random) -> str:
    return f"{source.getrandbits(80):020x}"
