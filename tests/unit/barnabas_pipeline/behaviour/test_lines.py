"""Records to lines: robots, page views, what was sent twice, dead letters, and sessions (SP-2)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas_pipeline import places
from barnabas_pipeline.behaviour import lines
from barnabas_pipeline.behaviour.referrers import host_of, hosts_of
from barnabas_pipeline.behaviour.schemas import SESSIONS
from barnabas_pipeline.behaviour.sessions import derive, join, single_hits
from barnabas_pipeline.places import Positions
from barnabas_pipeline.schemas import DEAD_LETTERS
from tests.kit.pipeline.web_records import line, record, table

TIMES = pl.Datetime("us", "UTC")


def test_robots_and_page_views() -> None:
    seen: list[tuple[dict[str, Any], bool, bool]] = [
        ({"agent": "Mozilla/5.0 (X11; Linux x86_64; rv:24.0) Gecko Firefox/24.0"}, False, True),
        ({"agent": "Mozilla/5.0 (Linux; U; CUBOT P9) Mobile"}, False, True),
        ({"agent": "Mozilla/5.0 (compatible; GoogleBot/2.1)"}, True, True),
        ({"agent": "curl/8.5.0"}, True, True),
        ({"agent": "-"}, True, True),
        ({"agent": "Tiny Tiny RSS/1.11 (http://tt-rss.org/)"}, True, True),
        ({"path": "/a/style.CSS?v=2"}, False, False),
        ({"path": "/a.b/c"}, False, True),
        ({"status": 404}, False, False),
        ({"status": 304}, False, True),
        ({"status": 301}, False, False),
    ]
    rows = [record(line(**given), i, position=i * 100) for i, (given, _, _) in enumerate(seen)]
    found = classified(rows)
    assert found.select("robot", "page_view").rows() == [(robot, page) for _, robot, page in seen]


def test_what_was_sent_twice_counts_once_sp_2() -> None:
    """SP-2: by file and position; equal lines at two positions are two hits."""
    same = line()
    rows = [
        record(same, 10, position=0),
        record(same, 11, position=90),  # equal, and another hit
        record(same, 12, position=0),  # the collector began again ...
        record(same, 13, position=90),
        record(same, 14, position=180),  # ... and went on
        record(same, 15, position=0, file="other.log"),
        record(same, 16),  # from somebody else's producer
        record(same, 17),
        record(b"bad", 18, position=270),
        record(b"bad", 19, position=270),
        record(same, 10, position=50, partition=1),
    ]
    found = classified(rows)
    assert offsets(lines.events(found)) == [10, 10, 11, 14, 15, 16, 17]
    assert letters(rows)["offset"].to_pylist() == [18]
    files = places.file_counts(found)
    counts = {(row["file_id"], row["partition"]): row for row in files.iter_rows(named=True)}
    first = counts["access.log", 0]
    assert (first["read"], first["valid"], first["dead_letters"]) == (7, 3, 1)
    assert (first["sent_twice"], first["position"]) == (3, 270)
    assert sum(row["read"] for row in counts.values()) == len(rows)

    again = [record(same, 20, position=270), record(same, 21, position=360), record(same, 22)]
    seen = {key: row["position"] for key, row in counts.items()}
    later = classified(again, seen)
    assert offsets(lines.events(later)) == [21, 22]
    total = places.merge_files(pl.concat([files, places.file_counts(later)]))
    (row,) = total.filter(file_id="access.log", partition=0).iter_rows(named=True)
    assert (row["read"], row["valid"], row["dead_letters"], row["sent_twice"]) == (9, 4, 1, 4)


def test_a_dead_letter_keeps_what_came_sp_2() -> None:
    """SP-2: the line and its headers as they came, the reason, topic, partition and offset."""
    rows = [record(b"\xff\x00 no line", 7, position=300, partition=2), record(b"bad", 8)]
    found = letters(rows)
    assert found.schema == DEAD_LETTERS
    first, second = found.to_pylist()
    assert (first["key"], first["value"]) == (b"key", b"\xff\x00 no line")
    place = ("control character", "/logs/access.log", 4)
    assert (first["reason"], first["file"], first["line"]) == place
    assert (first["topic"], first["partition"], first["offset"]) == ("web-access", 2, 7)
    headers = {header["key"]: header["value"] for header in first["headers"]}
    assert headers["file.position"] == b"300" and len(headers) == 4
    assert (second["headers"], second["file"], second["line"]) == (None, None, None)


def test_headers_of_others_are_no_harm() -> None:
    """A name twice: the first counts. What is no number is none, and what is no text is mended."""
    rows = [list(record(line(), offset, position=0)) for offset in range(3)]
    rows[0][-1] = [("file.id", b"a"), ("file.id", b"b"), ("file.position", b" 7 "), ("x", None)]
    rows[1][-1] = [("file.id", b"a"), ("file.position", b"many")]
    rows[2][-1] = [("file.id", b"a\xff"), ("file.position", b"9"), ("file", b"caf\xe9")]
    found = classified([tuple(row) for row in rows])
    assert found.select("file_id", "position", "file").rows() == [
        ("a", 7, None),
        ("web-access-0", 1, None),
        ("a\\xff", 9, "caf\ufffd"),
    ]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://www.Example.org:80/x", "example.org"),
        ("https://me@example.org", "example.org"),
        ("android-app://com.example/", "com.example"),
        ("example.org/x", None),
        ("http://[2001:DB8::1]:80/x", "[2001:db8::1]"),
        ("http:///x", None),
        ("http://www./x", None),
        (None, None),
    ],
)
def test_hosts_of_referrers(url: str | None, host: str | None) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    ("clock", "sessions"), [("10:29:59", 1), ("10:30:00", 2)], ids=["a second before", "exactly"]
)
def test_thirty_minutes_of_silence_end_a_session(clock: str, sessions: int) -> None:
    rows = [record(line(clock=at), i) for i, at in enumerate(("10:00:00", clock))]
    assert len(sessions_of(rows)) == sessions


def test_a_session_is_described() -> None:
    visits = [
        line(clock="10:00:05", path="/b", referrer="http://www.Example.org:80/x"),
        line(clock="10:00:00", path="/logo.png"),
        line(clock="10:20:00", path="/gone", status=404),
        line(clock="10:10:00", path="/c"),
        line(clock="10:10:00", path="/d"),
        line(clock="10:00:00", agent="Other", path="/only"),
        line(clock="11:09:59", client="198.18.0.2", path="/logo.png"),
    ]
    found = sessions_of([record(text, i) for i, text in enumerate(visits)])
    newest_s = int(datetime(2015, 5, 17, 11, 9, 59, tzinfo=UTC).timestamp())
    rows = derive(found, newest_s).sort("start", "agent", "client").to_dicts()
    main, other, still = rows
    main, other = (main, other) if main["hits"] == 5 else (other, main)
    assert (main["length_seconds"], main["hits"], main["pages"]) == (1200, 5, 3)
    assert (main["entry"], main["exit"]) == ("/b", "/d")
    assert (main["referrer"], main["bytes"], main["bounce"]) == ("example.org", 500, False)
    assert (other["entry"], other["exit"], other["bounce"]) == ("/only", "/only", True)
    assert (still["entry"], still["pages"], still["bounce"]) == (None, 0, False)
    assert [main["open"], other["open"], still["open"]] == [False, False, True]


def test_portions_in_any_order_give_the_same_sessions() -> None:
    """A session goes on in a later run, and a late line joins what it belongs to."""
    clocks = ("10:00:00", "10:20:00", "10:40:00", "11:00:00", "11:40:00", "12:09:59", "12:40:00")
    rows = [
        record(line(clock=clock, path=f"/{i}", client=client), 10 * i + n)
        for i, clock in enumerate(clocks)
        for n, client in enumerate(("198.18.0.1", "198.18.0.2"))
    ]
    at_once = as_set(sessions_of(rows))
    assert len(at_once) == 6
    for order in (rows, rows[3::2] + rows[2::-1] + rows[4::2]):
        parts = [sessions_of(portion) for portion in (order[:3], order[3:8], order[8:])]
        assert as_set(join(pl.concat(parts))) == at_once
        assert as_set(join(pl.concat([join(pl.concat(parts[1:])), parts[0]]))) == at_once


def classified(rows: list[Any], seen: Positions | None = None) -> pl.DataFrame:
    return lines.classify(table(rows), seen or {})


def letters(rows: list[Any]) -> pa.Table:
    return places.dead_letters(classified(rows), table(rows))


def sessions_of(rows: list[Any]) -> pl.DataFrame:
    found = join(single_hits(with_hosts(lines.events(classified(rows)))))
    assert found.columns == SESSIONS.names
    return found


def with_hosts(hits: pl.DataFrame) -> pl.DataFrame:
    return hits.with_columns(
        hosts_of(hits["referrer"]).alias("host"), pl.lit(None, pl.Date).alias("day")
    )


def offsets(rows: pl.DataFrame) -> list[int]:
    return sorted(rows["offset"])


def as_set(sessions: pl.DataFrame) -> set[str]:
    return {repr(row) for row in sessions.iter_rows()}


def test_sp_2_a_visitor_that_loads_nothing_but_pages_behaves_like_a_robot() -> None:
    """SP-2: if others load assets, too; and however its sessions were joined."""
    pages = [line(clock=f"10:{i:02}:00", path=f"/{i}") for i in range(30)]
    others = [
        line(client=f"198.18.1.{visitor}", path=path)
        for visitor in range(3)
        for path in ("/", "/a", "/logo.png")
    ]
    rows = [record(text, i) for i, text in enumerate([*pages, *others])]
    found = derive(join(pl.concat([sessions_of(rows[:20]), sessions_of(rows[20:])])), 0)
    assert found.filter("automated")["client"].to_list() == ["198.18.0.1"]
    assert not derive(sessions_of(rows[:29]), 0)["automated"].any(), "fewer pages"
    assert not derive(sessions_of(rows[:30]), 0)["automated"].any(), "assets are elsewhere"


@pytest.mark.parametrize(
    ("every_s", "jitter_s", "path", "automated"),
    [
        (60, 0, "/health", True),
        (300, 1, "/health", True),
        (7200, 1, "/health", True),
        (60, 9, "/health", False),
        (7200, 900, "/health", False),
        (60, 0, "/{}", False),
        (2, 0, "/health", False),
        (60, 0, "/health.png", False),
    ],
)
def test_sp_2_a_visitor_that_views_one_page_at_a_fixed_interval_behaves_like_a_robot(
    every_s: int, jitter_s: int, path: str, automated: bool
) -> None:
    """SP-2: whether an interval ends a session or not, and however its sessions were joined."""
    start = datetime(2015, 5, 17, 3, tzinfo=UTC)
    times = [start + timedelta(seconds=i * every_s + i % 2 * jitter_s) for i in range(40)]
    visits = [
        line(path=path.format(i), day=f"{at:%d/%b/%Y}", clock=f"{at:%X}")
        for i, at in enumerate(times)
    ]
    rows = [record(text, i) for i, text in enumerate([*visits, line(client="198.18.0.9")])]
    parts = [sessions_of(rows[20:]), sessions_of(rows[:20:2]), sessions_of(rows[1:20:2])]
    at_once, joined = sessions_of(rows), join(pl.concat(parts))
    assert as_set(joined) == as_set(at_once)
    found = derive(joined, 0).filter("automated")["client"].unique().to_list()
    assert found == (["198.18.0.1"] if automated else [])


def test_sp_2_a_person_whose_page_reloads_itself_remains_a_person() -> None:
    """SP-2: because this person also loads an asset; and eleven requests are too few."""
    every = [line(clock=f"10:{minute:02}:00", path="/live") for minute in range(0, 48, 4)]
    asset = line(clock="10:00:01", path="/logo.png")
    for texts, expected in ((every, True), (every[:-1], False), ([*every, asset], False)):
        found = derive(sessions_of([record(text, i) for i, text in enumerate(texts)]), 0)
        assert found["automated"].to_list() == [expected]


def test_sp_2_sessions_of_an_earlier_version_have_no_first_hits() -> None:
    """SP-2: they are joined with new ones, and not mistaken for a robot's."""
    every = [line(clock=f"10:{minute:02}:00", path="/live") for minute in range(0, 60, 3)]
    rows = [record(text, i) for i, text in enumerate(every)]
    old = sessions_of(rows[:10]).with_columns(first_hits=pl.lit(None, pl.List(TIMES)))
    found = derive(join(pl.concat([old, sessions_of(rows[10:])])), 0)
    assert found.select("hits", "automated").rows() == [(20, False)]


def test_sp_2_a_format_without_agents_has_people() -> None:
    """SP-2: only a missing agent where one belongs is a robot's."""
    texts = [line().rsplit(b' "', 2)[0], line(agent="-")]
    found = classified([record(text, i) for i, text in enumerate(texts)])
    assert found.select("format", "robot").rows() == [("common", False), ("combined", True)]
