"""BT-4: funnels, and the pages that follow each other, against plain counts of the same events."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from barnabas_pipeline.tracking.figures import read_figures
from barnabas_pipeline.tracking.funnels import Funnel, read_funnel
from tests.kit.pipeline.event_records import MINUTE_MS, MONDAY_MS, event, records, take

FUNNELS = [
    Funnel("Order", ("/shop/*", "/basket", "purchase"), timedelta(hours=1)),
    Funnel("Any", ("/*", "p*"), timedelta(minutes=30)),
    Funnel("Back", ("/basket", "/shop/a", "/basket"), timedelta(hours=3)),
]
SILENCE_MS = 30 * MINUTE_MS


class Seen(NamedTuple):
    visitor: str
    at_ms: int
    name: str
    path: str


def some_events(seed: int) -> list[Seen]:
    source = random.Random(seed)
    return [
        Seen(
            source.choice(["visitor-a", "visitor-b"]),
            MONDAY_MS + source.randrange(240) * MINUTE_MS,
            source.choice(["pageview", "pageview", "purchase", "click"]),
            source.choice(["/shop/a", "/shop/b", "/basket", "/about"]),
        )
        for _ in range(source.randrange(1, 60))
    ]


def is_on(each: Seen, step: str) -> bool:
    is_page = step.startswith("/")
    if (each.name == "pageview") != is_page:
        return False
    value = each.path if is_page else each.name
    return value.startswith(step[:-1]) if step.endswith("*") else value == step


def reached(seen: list[Seen], funnel: Funnel) -> Iterator[int]:
    """Yield how many steps each visit completed. The events are those of a visitor, in order."""
    within_ms = funnel.within // timedelta(milliseconds=1)
    first = [place for place, each in enumerate(seen) if is_on(each, funnel.steps[0])]
    begins = [
        place
        for before, place in zip([None, *first], first, strict=False)
        if before is None or seen[place].at_ms - seen[before].at_ms >= within_ms
    ]
    for begin, after in pairwise([*begins, len(seen)]):
        end_ms = max(seen[place].at_ms for place in first if begin <= place < after) + within_ms
        last, steps = begin, 1
        for step in funnel.steps[1:]:
            following = range(last + 1, len(seen))
            found = next((place for place in following if is_on(seen[place], step)), None)
            if found is None or seen[found].at_ms >= end_ms:
                break
            last, steps = found, steps + 1
        yield steps


def by_visitor(seen: list[Seen]) -> list[list[Seen]]:
    ordered = sorted(enumerate(seen), key=lambda pair: (pair[1].visitor, pair[1].at_ms, pair[0]))
    groups = groupby((each for _, each in ordered), key=lambda each: each.visitor)
    return [[*group] for _, group in groups]


@pytest.mark.parametrize("seed", range(6))
def test_bt_4_funnels_and_next_pages_are_those_of_a_plain_count(seed: int) -> None:
    seen = some_events(seed)
    made = [
        event(f"{number}", each.at_ms, each.name, each.path, each.visitor)
        for number, each in enumerate(seen)
    ]
    made.append(event("robot-01", MONDAY_MS, path="/shop/a", visitor="visitor-c", bot=True))
    made.append(event("nobody-1", MONDAY_MS, path="/shop/a", visitor=None))
    with TemporaryDirectory() as directory:
        view = take(Path(directory), 0, records(made, partitions=1))
        figures = read_figures(view, FUNNELS)
    for found in figures.funnels:
        steps = [each for visitor in by_visitor(seen) for each in reached(visitor, found.funnel)]
        wanted = [
            sum(each >= number for each in steps) for number in range(1, len(found.steps) + 1)
        ]
        assert [each.visits for each in found.steps] == wanted
    views = [[each for each in of if each.name == "pageview"] for of in by_visitor(seen)]
    pairs = Counter(
        (first.path, second.path)
        for of in views
        for first, second in pairwise(of)
        if first.path != second.path and second.at_ms - first.at_ms < SILENCE_MS
    )
    following = {(each.page, each.next): each.times for each in figures.next_pages}
    assert following == pairs


@pytest.mark.parametrize("funnel", FUNNELS)
def test_without_events_nobody_enters(tmp_path: Path, funnel: Funnel) -> None:
    view = take(tmp_path, 0, records([event("1", name="click", path="/about")]))
    assert [each.visits for each in read_funnel(view, funnel).steps] == [0] * len(funnel.steps)


def test_a_page_without_a_path_is_no_next_page(tmp_path: Path) -> None:
    made = [event("1", path="/a"), event("2", MONDAY_MS + MINUTE_MS, path="/b")]
    nowhere = event("3", MONDAY_MS + 2 * MINUTE_MS)
    del nowhere["url"]
    view = take(tmp_path, 0, records([*made, nowhere], partitions=1))
    assert [(each.page, each.next) for each in read_figures(view).next_pages] == [("/a", "/b")]
