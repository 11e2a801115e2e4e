"""The pure functions: lines to columns, reasons, robots, what was sent twice, sessions (SP-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from barnabas.pipeline import access_log, behaviour
from barnabas.pipeline.schema import struct
from barnabas.pipeline.sessions import SESSIONS, joined_sessions, single_hits
from tests.pipeline.web_records import frame, line, record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HEAD = "198.18.0.1 - - [17/May/2015:10:05:03 +0200] "

REASONS: list[tuple[bytes | None, str | None]] = [
    ((HEAD + '"GET / HTTP/1.1" 200 12 "-" "-"').encode(), None),
    ((HEAD + '"GET / HTTP/1.1" 304 -').encode(), None),  # the Common Log Format
    ((HEAD + '"-" 408 - "-" "-"').encode(), None),  # the server could not read it, and said so
    ((HEAD + r'"\x16\x03\x01" 400 1 "-" "-"').encode(), None),
    ((HEAD + '"GET / HTTP/1.1" 200 12 "-" "' + r"\"\\" * 20_000 + '"').encode(), None),
    (None, access_log.NO_VALUE),
    (HEAD.encode() + b'"GET /caf\xe9 HTTP/1.1" 200 12 "-" "-"', access_log.NOT_UTF8),
    (b"", access_log.EMPTY),
    (b" \r", access_log.EMPTY),
    (HEAD.encode() + b'"GET / HTTP/1.1" 200 12 "-" "\x00"', access_log.CONTROL_CHARACTER),
    ((HEAD + '"GET / HTTP/1.1" 200 12 "-" "Moz').encode(), access_log.UNBALANCED_QUOTES),
    (b"Exception in thread main", access_log.NOT_AN_ACCESS_LOG),
    (HEAD.encode(), access_log.NOT_AN_ACCESS_LOG),
    ((HEAD + '"GET / HTTP/1.1" 200 12 "-" "-" 0.3').encode(), access_log.NOT_AN_ACCESS_LOG),
    ((HEAD + '"GET / HTTP/1.1" 200 12 17').encode(), access_log.NOT_AN_ACCESS_LOG),
    ((HEAD.replace("17/May", "32/May") + '"GET / HTTP/1.1" 200 12').encode(), access_log.BAD_TIME),
    ((HEAD + '"GET / HTTP/1.1" 2OO 12').encode(), access_log.BAD_STATUS),
    ((HEAD + '"GET / HTTP/1.1" 999 12').encode(), access_log.BAD_STATUS),
    ((HEAD + '"/" 200 12').encode(), access_log.BAD_REQUEST),
    ((HEAD + '"GET / HTTP/1.1" 200 -12').encode(), access_log.BAD_SIZE),
    (b"x " * 100_000, access_log.NOT_AN_ACCESS_LOG),
    (b'"' * 100_001, access_log.UNBALANCED_QUOTES),
]


def test_every_bad_line_has_its_reason_sp_2(spark: SparkSession) -> None:
    """SP-2, UX-4: what is no access log is told apart, and no line is too odd to be looked at."""
    rows = [record(value, i, position=i * 100) for i, (value, _) in enumerate(REASONS)]
    rows.append(record(b"x" * 10, len(rows), position=len(rows) * 100, cut=True))
    wanted = [*(reason for _, reason in REASONS), access_log.TOO_LONG]
    assert {reason for reason in wanted if reason} == set(access_log.REASONS)
    parsed = access_log.parse(behaviour.identified(frame(spark, rows)))
    found = parsed.orderBy("offset").select("reason").collect()
    assert [row["reason"] for row in found] == wanted


def test_a_line_becomes_columns(spark: SparkSession) -> None:
    head = "2001:db8::1 id frank o'hara [17/May/2015:00:05:03 -0130]"
    lines = [
        head + r' "POST http://me:80/a%20b c?q=1?2 HTTP/2.0" 201 77 "http://x/?y" "a \"b\" \\"',
        HEAD + '"GET /" 304 - "" ""\r',
    ]
    rows = [record(text.encode(), i, position=i * 100) for i, text in enumerate(lines)]
    first, second = (
        row.asDict()
        for row in access_log.parse(behaviour.identified(frame(spark, rows)))
        .selectExpr("*", "unix_seconds(time) as at_s")
        .orderBy("offset")
        .collect()
    )
    assert first["at_s"] == 1431826503  # 01:35:03 UTC
    assert first["utc_offset_minutes"] == -90
    assert (first["client"], first["ident"], first["user"]) == ("2001:db8::1", "id", "frank o'hara")
    assert (first["method"], first["path"], first["query"]) == ("POST", "/a%20b c", "q=1?2")
    assert (first["protocol"], first["status"], first["bytes"]) == ("HTTP/2.0", 201, 77)
    assert (first["referrer"], first["agent"]) == ("http://x/?y", 'a "b" \\')
    assert second["protocol"] is second["bytes"] is second["referrer"] is second["agent"] is None
    assert (second["path"], second["utc_offset_minutes"]) == ("/", 120)


def test_robots_and_page_views(spark: SparkSession) -> None:
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
    found = classified(spark, rows).orderBy("offset").collect()
    assert [(row["robot"], row["page_view"]) for row in found] == [
        (robot, page) for _, robot, page in seen
    ]


def test_what_was_sent_twice_counts_once_sp_2(spark: SparkSession) -> None:
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
    lines = classified(spark, rows)
    assert offsets(behaviour.events(lines)) == [10, 10, 11, 14, 15, 16, 17]
    assert offsets(behaviour.dead_letters(lines)) == [18]
    files = behaviour.file_counts(lines).persist()
    counts = {(row["file_id"], row["partition"]): row for row in files.collect()}
    first = counts["access.log", 0]
    assert (first["read"], first["valid"], first["dead_letters"]) == (7, 3, 1)
    assert (first["sent_twice"], first["position"]) == (3, 270)
    assert sum(row["read"] for row in counts.values()) == len(rows)

    again = [record(same, 20, position=270), record(same, 21, position=360), record(same, 22)]
    later = behaviour.classified(frame(spark, again), files)
    assert offsets(behaviour.events(later)) == [21, 22]
    total = behaviour.added_files(files, behaviour.file_counts(later))
    row = total.where("file_id = 'access.log' and partition = 0").collect()[0]
    assert (row["read"], row["valid"], row["dead_letters"], row["sent_twice"]) == (9, 4, 1, 4)


def test_a_dead_letter_tells_why_and_whence_sp_2(spark: SparkSession) -> None:
    """SP-2: the line as it came, its headers, reason, source topic, partition and offset."""
    rows = [record(b"\xff no line", 7, position=300, partition=2), record(b"bad", 8)]
    letters = behaviour.dead_letters(classified(spark, rows))
    sent = behaviour.dead_letter_records(letters)
    sent.persist()
    first = sent.collect()[0]
    assert (bytes(first["key"]), bytes(first["value"])) == (b"key", b"\xff no line")
    headers = {header["key"]: bytes(header["value"]) for header in first["headers"]}
    assert headers == {
        "file": b"/logs/access.log",
        "file.id": b"access.log",
        "file.position": b"300",
        "file.line": b"4",
        "reason": b"not UTF-8",
        "source.topic": b"web-access",
        "source.partition": b"2",
        "source.offset": b"7",
    }
    sources = behaviour.dead_letter_sources(sent).collect()
    assert sorted(tuple(row) for row in sources) == [("web-access", 0, 8), ("web-access", 2, 7)]


def test_where_a_dead_letter_came_from_last_counts(spark: SparkSession) -> None:
    """Several jobs may share a dead-letter topic, and one may read another's."""
    rows = [record(b"\xff no line", 7, position=300, partition=2)]
    sent = behaviour.dead_letter_records(behaviour.dead_letters(classified(spark, rows)))
    later = sent.selectExpr(
        "'unreadable' reason", "key", "value", "headers", "'dead' topic", "3 partition", "9 offset"
    )
    (row,) = behaviour.dead_letter_sources(behaviour.dead_letter_records(later)).collect()
    assert tuple(row) == ("dead", 3, 9)


@pytest.mark.parametrize(
    ("clock", "sessions"), [("10:29:59", 1), ("10:30:00", 2)], ids=["a second before", "exactly"]
)
def test_thirty_minutes_of_silence_end_a_session(
    spark: SparkSession, clock: str, sessions: int
) -> None:
    rows = [record(line(clock=at), i) for i, at in enumerate(("10:00:00", clock))]
    assert joined(spark, rows).count() == sessions


def test_a_session_is_described(spark: SparkSession) -> None:
    visits = [
        line(clock="10:00:05", path="/b", referrer="http://www.Example.org:80/x"),
        line(clock="10:00:00", path="/logo.png"),
        line(clock="10:20:00", path="/gone", status=404),
        line(clock="10:10:00", path="/c"),
        line(clock="10:10:00", path="/d"),
        line(clock="10:00:00", agent="Other", path="/only"),
        line(clock="11:09:59", client="198.18.0.2", path="/logo.png"),
    ]
    found = joined(spark, [record(text, i) for i, text in enumerate(visits)])
    main, other, still = found.orderBy("start", "agent", "client").collect()
    main, other = (main, other) if main["hits"] == 5 else (other, main)
    assert (main["length_seconds"], main["hits"], main["pages"]) == (1200, 5, 3)
    assert (main["entry"], main["exit"]) == ("/b", "/d")
    assert (main["referrer"], main["bytes"], main["bounce"]) == ("example.org", 500, False)
    assert (other["entry"], other["exit"], other["bounce"]) == ("/only", "/only", True)
    assert (still["entry"], still["pages"], still["bounce"]) == (None, 0, False)
    assert [main["open"], other["open"], still["open"]] == [False, False, True]


def test_portions_in_any_order_give_the_same_sessions(spark: SparkSession) -> None:
    """A session goes on in a later run, and a late line joins what it belongs to."""
    clocks = ("10:00:00", "10:20:00", "10:40:00", "11:00:00", "11:40:00", "12:09:59", "12:40:00")
    rows = [
        record(line(clock=clock, path=f"/{i}", client=client), 10 * i + n)
        for i, clock in enumerate(clocks)
        for n, client in enumerate(("198.18.0.1", "198.18.0.2"))
    ]
    at_once = as_set(joined(spark, rows))
    assert len(at_once) == 6
    for order in (rows, rows[3::2] + rows[2::-1] + rows[4::2]):
        before = spark.createDataFrame([], struct(SESSIONS))
        for portion in (order[:3], order[3:8], order[8:]):
            before = joined(spark, portion, before).localCheckpoint()
        assert as_set(before) == at_once


def classified(spark: SparkSession, rows: list[Any]) -> DataFrame:
    files = spark.createDataFrame([], struct(behaviour.FILES))
    return behaviour.classified(frame(spark, rows), files).persist()


def joined(spark: SparkSession, rows: list[Any], before: DataFrame | None = None) -> DataFrame:
    hits = behaviour.events(classified(spark, rows))
    newest = max(row["s"] for row in hits.selectExpr("unix_seconds(time) s").collect())
    if before is None:
        before = spark.createDataFrame([], struct(SESSIONS))
    return joined_sessions(before, single_hits(hits), newest)


def offsets(rows: DataFrame) -> list[int]:
    return sorted(row["offset"] for row in rows.select("offset").collect())


def as_set(sessions: DataFrame) -> set[tuple[Any, ...]]:
    """All columns but `open`, which depends on the newest hit there is by then."""
    return {tuple(row) for row in sessions.drop("open").collect()}
