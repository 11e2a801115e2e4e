"""What the pages say about lines of access logs, compared with a plain count of the same lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from math import ceil
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_pipeline.behaviour.agents import parse_agents
from barnabas_pipeline.behaviour.schemas import EVENTS
from barnabas_pipeline.pages.access_cards import AccessPages
from barnabas_pipeline.pages.access_hits import Known
from barnabas_pipeline.pages.filters import MISSING, Filters, Period
from barnabas_pipeline.pages.hit_selection import Selection
from barnabas_pipeline.pages.source import Options
from barnabas_pipeline.pages.table_rows import TableRows
from barnabas_track.countries import Countries
from tests.kit.country_database import write_database
from tests.unit.barnabas_pipeline.pages.plain_events import SILENCE_US, ranked

BEGIN_US = int(datetime(2026, 3, 1, tzinfo=UTC).timestamp()) * 1_000_000
MINUTE_US = 60_000_000
AGENTS = {
    None: ("No user agent", MISSING, MISSING),
    "curl/8.5.0": ("curl", MISSING, MISSING),
    "Mozilla/5.0 (X11; Linux x86_64; rv:123.0) Gecko/20100101 Firefox/123.0": (
        "Firefox",
        "Linux",
        "Computer",
    ),
}
ROBOT = "curl/8.5.0"
OWN = "own.example"
COUNTRIES = {"192.0.2.1": "AT"}
Line = dict[str, Any]

ROWS = st.fixed_dictionaries(
    {
        "minute": st.integers(0, 20).map(lambda step: step * 10),
        "client": st.sampled_from(("192.0.2.1", "2001:db8::1")),
        "agent": st.sampled_from(tuple(AGENTS)),
        "method": st.sampled_from(("GET", "POST", None)),
        "path": st.sampled_from(("/", "/a", None)),
        "query": st.sampled_from((None, None, "x=1", "utm_source=letter&x")),
        "status": st.sampled_from((200, 404, 404, 503)),
        "bytes": st.none() | st.integers(0, 2**40),
        "referrer": st.sampled_from((None, "https://x.example/a?b", f"https://{OWN}/")),
        "virtual_host": st.sampled_from((None, "v.example")),
        "response_time_us": st.none() | st.integers(0, 1_000_000),
        "page_view": st.booleans(),
    }
)
CHOICES = {
    "host": ("v.example", MISSING),
    "page": ("/", MISSING),
    "status": ("404", "200", "500"),
    "method": ("GET", MISSING),
    "source": ("direct", "letter", "x.example", "own"),
    "entry": ("/", MISSING),
    "exit": ("/a", MISSING),
    "browser": ("Firefox", "curl", "No user agent"),
    "system": ("Linux", MISSING),
    "device": ("Computer", MISSING),
    "country": ("AT", MISSING),
    "who": ("people", "robots"),
}
VALUES = st.lists(st.sampled_from(sorted(CHOICES)), max_size=2, unique=True).flatmap(
    lambda names: st.fixed_dictionaries(
        {
            name: st.lists(st.sampled_from(CHOICES[name]), min_size=1, max_size=2, unique=True).map(
                tuple
            )
            for name in names
        }
    )
)
BOUNDS = st.none() | st.integers(0, 20).map(lambda step: BEGIN_US + step * 10 * MINUTE_US)


def lines_of(rows: Sequence[Line]) -> list[Line]:
    """Return the lines, with their visits in `visit`."""
    lines = [
        {
            **row,
            "us": BEGIN_US + row["minute"] * MINUTE_US,
            "robot": row["agent"] == ROBOT,
            "partition": 0,
            "offset": number,
        }
        for number, row in enumerate(rows)
    ]
    last: dict[Any, Line] = {}
    for each in sorted(lines, key=lambda each: (each["us"], each["offset"])):
        before = last.get((each["client"], each["agent"]))
        is_new = before is None or each["us"] - before["us"] >= SILENCE_US
        each["visit"] = [] if is_new or before is None else before["visit"]
        each["visit"].append(each)
        last[each["client"], each["agent"]] = each
    return lines


def dimension(each: Line, name: str) -> str:
    own = {"host": "virtual_host", "page": "path", "method": "method"}
    if name in own:
        return each[own[name]] or MISSING
    if name == "status":
        return str(each["status"])
    if name == "who":
        return "robots" if each["robot"] else "people"
    if name in ("browser", "system", "device"):
        return AGENTS[each["agent"]][("browser", "system", "device").index(name)]
    if name == "country":
        return COUNTRIES.get(each["client"], MISSING)
    views = [line for line in each["visit"] if line["page_view"]]
    if name in ("entry", "exit"):
        return (views[0 if name == "entry" else -1]["path"] if views else None) or MISSING
    if not views:
        return "direct"
    if views[0]["query"] and "utm_source" in views[0]["query"]:
        return "letter"
    return {None: "direct", f"https://{OWN}/": "own"}.get(views[0]["referrer"], "x.example")


def matching(lines: Sequence[Line], filters: Filters) -> list[Line]:
    since_us, until_us = filters.period
    return [
        each
        for each in lines
        if (since_us is None or each["us"] >= since_us)
        and (until_us is None or each["us"] < until_us)
        and all(dimension(each, name) in wanted for name, wanted in filters.values.items())
    ]


def plain_cards(lines: Sequence[Line], filters: Filters) -> dict[str, list[list[Any]]]:
    hits = matching(lines, filters)
    rest = {name: wanted for name, wanted in filters.values.items() if name != "who"}
    everyone = matching(lines, filters._replace(values=rest))
    visits = list({id(each["visit"]): each["visit"] for each in hits}.values())
    with_pages = [each for each in visits if any(line["page_view"] for line in each)]
    sizes: dict[str, int] = defaultdict(int)
    times: dict[str, list[int]] = defaultdict(list)
    for each in hits:
        sizes[each["path"] or MISSING] += each["bytes"] or 0
        if each["response_time_us"] is not None:
            times[each["path"] or MISSING].append(each["response_time_us"])
    missing = [(each["path"] or MISSING, link(each)) for each in hits if each["status"] == 404]
    counted = {each: missing.count(each) for each in missing}
    least = min(5, sum(map(len, times.values())))
    cards = {
        "pages": ranked(each["path"] or MISSING for each in hits if each["page_view"]),
        "host": ranked(each["virtual_host"] for each in hits if each["virtual_host"]),
        "status": ranked(str(each["status"]) for each in hits),
        "method": ranked(each["method"] or MISSING for each in hits),
        "errors": ranked(each["path"] or MISSING for each in hits if each["status"] >= 400),
        "bytes": [
            [*each] for each in sorted(sizes.items(), key=lambda e: (-e[1], e[0])) if each[1]
        ],
        "who": ranked(dimension(each, "who") for each in everyone),
        "missing": [
            [*pair, count]
            for pair, count in sorted(counted.items(), key=lambda each: (-each[1], each[0]))
        ],
        "times": sorted(
            (
                [page, quantile(found, 0.95), quantile(found, 0.5), len(found)]
                for page, found in times.items()
                if len(found) >= least
            ),
            key=lambda cells: (-cells[1], -cells[3], cells[0]),
        ),
    }
    for name in ("entry", "exit", "source"):
        cards[name] = ranked(dimension(each[0], name) for each in with_pages)
    for name in ("browser", "system", "device", "country"):
        cards[name] = ranked(dimension(each[0], name) for each in visits)
    return cards


def link(each: Line) -> str:
    return (each["referrer"] or "none").partition("?")[0]


def quantile(values: list[int], share: float) -> float:
    return sorted(values)[ceil(len(values) * share) - 1]


@given(
    st.lists(ROWS, min_size=20, max_size=40) | st.lists(ROWS, max_size=3), VALUES, BOUNDS, BOUNDS
)
def test_every_card_is_what_a_plain_count_says(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[Line],
    values: dict[str, tuple[str, ...]],
    since_us: int | None,
    until_us: int | None,
) -> None:
    lines = lines_of(rows)
    stored = [
        {**{name: each.get(name) for name in EVENTS.names}, "time": each["us"]} for each in lines
    ]
    table = pa.Table.from_pylist(stored, schema=EVENTS)
    dataset = ds.dataset([table.slice(at, 9) for at in range(0, len(table), 9)] or [table])
    agents = parse_agents(
        pl.DataFrame(
            {"agent": list(AGENTS), "robot": [each == ROBOT for each in AGENTS]},
            {"agent": pl.String, "robot": pl.Boolean},
        )
    )
    path = tmp_path_factory.getbasetemp() / "countries.mmdb"
    networks = {"192.0.2.0/24": {"country": {"iso_code": COUNTRIES["192.0.2.1"]}}}
    known = Known(agents, OWN, Countries(write_database(path, networks)))
    pages = AccessPages(TableRows(dataset, EVENTS), known, Options())
    filters = Filters(Period(since_us, until_us), values)
    complete = pages.with_defaults(filters)
    assert complete.values["who"] == values.get("who", ("people",))
    selection = Selection(pages.hits, complete)
    hits = matching(lines, complete)
    assert selection.matching == len(hits)
    found = {each["name"]: each["value"] for each in pages.headlines(selection, None)}
    assert found["visitors"] == len({(each["client"], each["agent"]) for each in hits})
    assert found["sessions"] == len({id(each["visit"]) for each in hits})
    assert found["page_views"] == sum(each["page_view"] for each in hits)
    assert found["bytes_sent"] == sum(each["bytes"] or 0 for each in hits)
    errors = sum(each["status"] >= 400 for each in hits)
    assert found["error_share"] == (errors / len(hits) if hits else None)
    for name, expected in plain_cards(lines, complete).items():
        card = pages.card(name, selection, None, {})
        assert card is not None
        keys = card["look"] == "bars"
        cells = [
            [row["key"] if keys else row["cells"][0], *row["cells"][1:]] for row in card["rows"]
        ]
        assert cells == expected, name
