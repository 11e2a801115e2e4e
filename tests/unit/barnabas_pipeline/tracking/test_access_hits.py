"""BT-3: lines of an access log and events of a tracker fill the same tables."""

from __future__ import annotations

import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import ConfigError
from barnabas_pipeline.accounts import Accounts, read_accounts
from barnabas_pipeline.behaviour.lines import parse_hits
from barnabas_pipeline.places import locate
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tracking.access_hits import visitors_key
from barnabas_pipeline.tracking.definition import Tracking, classify
from tests.kit.effort import examples
from tests.kit.pipeline.event_records import event, records, take
from tests.kit.pipeline.web_records import line, record, table

BEGIN = datetime(2015, 5, 17, 10, tzinfo=UTC)
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:24.0) Gecko Firefox/24.0"
KEY = b"k" * 32
ALIKE = ("start", "end", "pages", "entry", "exit", "robot")

Hit = tuple[int, int, str]  # the number of the visitor, the minute, the path
hits = st.tuples(st.integers(1, 3), st.integers(0, 300), st.sampled_from(("/", "/a", "/b")))


def as_line(hit: Hit, **more: Any) -> bytes:
    visitor, minute, path = hit
    at = BEGIN + timedelta(minutes=minute)
    given = {"agent": AGENT, "day": f"{at:%d/%b/%Y}", **more}
    return line(f"198.18.0.{visitor}", f"{at:%H:%M:%S}", path, **given)


def as_event(number: int, hit: Hit) -> dict[str, Any]:
    visitor, minute, path = hit
    at_ms = round((BEGIN + timedelta(minutes=minute)).timestamp() * 1_000)
    return event(str(number), at_ms, path=path, visitor=f"visitor-{visitor}")


def of_lines(directory: Path, lines: list[bytes], first: int = 0) -> Snapshot:
    rows = [record(text, first + n, position=100 * (first + n)) for n, text in enumerate(lines)]
    return take(directory, 0, table(rows), Tracking(KEY))


@pytest.mark.thorough
@settings(max_examples=examples(20), deadline=None)
@given(st.lists(hits, min_size=1, max_size=20))
def test_bt_3_the_same_visits_give_the_same_sessions(
    tmp_path_factory: pytest.TempPathFactory, visits: list[Hit]
) -> None:
    ordered = sorted(visits, key=lambda hit: hit[1])
    lines = of_lines(tmp_path_factory.mktemp("lines"), [as_line(hit) for hit in ordered])
    made = [as_event(number, hit) for number, hit in enumerate(ordered)]
    events = take(tmp_path_factory.mktemp("events"), 0, records(made, partitions=1))
    assert sessions_of(lines) == sessions_of(events)
    assert lines.frame("sessions")["client"].n_unique() == len({hit[0] for hit in visits})
    assert lines.frame("pages")["views"].sum() == events.frame("pages")["views"].sum()
    assert lines.frame("arrivals")["late"].sum() == 0


def sessions_of(found: Snapshot) -> list[tuple[object, ...]]:
    return sorted(found.frame("sessions").select(ALIKE).rows(), key=repr)


def test_bt_3_one_topic_may_contain_both(tmp_path: Path) -> None:
    rows = [
        record(as_line((1, 0, "/shop?utm_source=letter&utm_campaign=may")), 0, position=0),
        record(json.dumps(event("a")).encode(), 1),
        record(as_line((1, 5, "/missing"), status=404), 2, position=100),
        record(as_line((1, 6, "/style.css")), 3, position=200),
        record(as_line((2, 7, "/"), agent="curl/8.5.0"), 4, position=300),
        record(as_line((1, 0, "/shop")), 5, position=0),  # sent again
        record(b"no line at all", 6, position=400),
        record(b"no line at all", 7),
    ]
    found = take(tmp_path, 0, table(rows), Tracking(KEY))
    assert read_accounts(found)[0] == Accounts(8, 5, 2, 1)
    events = found.frame("events").sort("offset").to_dicts()
    assert [(each["name"], each["path"], each["robot"]) for each in events] == [
        ("pageview", "/shop", False),
        ("pageview", "/", False),
        ("error", "/missing", False),
        ("pageview", "/", True),
    ]
    assert (events[0]["source"], events[0]["campaign"]) == ("letter", "may")
    assert json.loads(events[2]["properties"]) == {"status": 404}
    assert found.reasons()["not JSON"] == 1, "nobody says that it is from a log"
    people = found.frame("sessions").filter(~pl.col("robot"))
    assert people.height == 2, "of the log's visitor, and of the tracker's"


def test_a_line_as_json_is_a_line(tmp_path: Path) -> None:
    """Caddy's log; the host is written as in an event."""
    request = {
        "remote_ip": "198.18.0.1",
        "proto": "HTTP/1.1",
        "method": "GET",
        "host": "WWW.Shop.example",
        "uri": "/a?b",
        "headers": {"User-Agent": [AGENT], "Referer": ["https://shop.example/"]},
    }
    log = {"ts": BEGIN.timestamp(), "request": request, "status": 200, "size": 7, "duration": 0.1}
    found = of_lines(tmp_path, [json.dumps({"logger": "http.log.access", **log}).encode()])
    [hit] = found.frame("events").select("name", "host", "path", "referrer").rows()
    assert hit == ("pageview", "shop.example", "/a", None)


def test_bt_6_no_address_is_stored(tmp_path: Path) -> None:
    """Visitors differ between output directories, but not between runs of one."""
    found = of_lines(tmp_path / "a", [as_line((7, 0, "/"))])
    other = take(
        tmp_path / "b", 0, table([record(as_line((7, 0, "/")), 0, position=0)]), Tracking(b"x" * 32)
    )
    assert "198.18" not in repr(found.frame("events").to_dicts())
    assert "198.18" not in repr(found.frame("sessions").to_dicts())
    assert found.frame("events")["visitor"][0] != other.frame("events")["visitor"][0]


def test_the_key_of_a_directory_is_kept(tmp_path: Path) -> None:
    key = visitors_key(tmp_path / "out")
    path = tmp_path / "out" / "visitors.key"
    assert len(key) == 32 and visitors_key(tmp_path / "out") == key
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_bytes(key[:5])
    with pytest.raises(ConfigError, match=r"visitors\.key has 5 bytes instead of 32"):
        visitors_key(tmp_path / "out")


def test_a_query_with_many_fields_is_no_campaign(tmp_path: Path) -> None:
    """BT-6: a hostile address costs only its campaign."""
    path = "/?utm_source=s&" + "&".join(f"a{number}=1" for number in range(200))
    found = take(tmp_path, 0, records([event("a", path=path)]))
    assert found.frame("events").select("path", "source").rows() == [("/", None)]


@given(st.lists(st.binary(max_size=200), min_size=1, max_size=10))
def test_bt_6_any_bytes_are_events_or_have_a_reason(values: list[bytes]) -> None:
    rows = [record(value, number, position=number * 300) for number, value in enumerate(values)]
    found = classify(table(rows), {}, KEY)
    assert found.height == len(values)
    assert found.filter(pl.col("name").is_not_null() & pl.col("reason").is_not_null()).height == 0
    alone = parse_hits(locate(table(rows)))
    # A value that begins like an event keeps the reason why it is none.
    is_line = pl.Series([not value.startswith(b"{") for value in values])
    assert found.filter(is_line)["reason"].to_list() == alone.filter(is_line)["reason"].to_list()
