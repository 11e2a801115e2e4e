"""What the live view counts of records, and of what is none of the expected ones."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas_collector.headers import FILE_ID, POSITION
from barnabas_pipeline.pages.last_half_hour import LastHalfHour
from barnabas_pipeline.pages.now_records import Reader, read_rows, reader_of
from barnabas_pipeline.pages.shapes import Kind, Leaders, Now
from tests.kit.pipeline.event_records import event
from tests.kit.pipeline.web_records import line

NOW_MS = 1_772_452_800_000
MINUTE_MS = 60_000
KINDS: list[Kind] = ["events", "access", "logs"]
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


class View:
    """A reader with its counts. The records of its batches have consecutive offsets."""

    def __init__(self, kind: Kind) -> None:
        self.reader: Reader = reader_of(kind)
        self.counts = LastHalfHour(self.reader.columns)
        self._offset = 0

    def add(self, *values: bytes | None, at_ms: int | None = NOW_MS, file: str = "") -> View:
        rows = []
        for value in values:
            headers = [(FILE_ID, file.encode()), (POSITION, b"%d" % (100 * self._offset))]
            rows.append(
                {
                    "topic": "topic",
                    "partition": 0,
                    "offset": self._offset,
                    "timestamp": at_ms,
                    "timestamp_type": 0,
                    "value": value,
                    "headers": [{"key": key, "value": of} for key, of in headers] if file else [],
                }
            )
            self._offset += 1
        found = read_rows(self.reader, pa.Table.from_pylist(rows, SCHEMA), NOW_MS)
        self.counts.add(found, NOW_MS)
        return self

    def back(self, records: int) -> None:
        self._offset -= records

    @property
    def now(self) -> Now:
        return self.counts.show(NOW_MS)

    @property
    def lists(self) -> dict[str, dict[str, int]]:
        return {title(each): of(each) for each in self.reader.lists(self.counts)}


def title(leaders: Leaders) -> str:
    return leaders["title"]


def of(leaders: Leaders) -> dict[str, int]:
    return {each["label"]: each["count"] for each in leaders["rows"]}


def stored(id_: str, **more: Any) -> bytes:
    return json.dumps(event(id_, NOW_MS, **more)).encode()


def test_events_are_counted_like_in_the_tables() -> None:
    view = View("events").add(
        stored("1", path="/basket?utm_source=letter"),
        stored("2", path="/basket", visitor="visitor-b"),
        stored("3", path="/basket", visitor="visitor-c", bot=True),
        stored("4", name="error"),
        stored("5", name="purchase", visitor=None),
    )
    assert (view.now["hits"], view.now["errors"], view.now["online"]) == (5, 1, 2)
    assert view.lists == {
        "Pages": {"/basket": 2},
        "Events": {"pageview": 3, "error": 1, "purchase": 1},
        "Sources": {"letter": 1},
    }


def test_a_repeated_event_is_counted_once() -> None:
    view = View("events").add(stored("1"), stored("1")).add(stored("1"), stored("2"))
    assert view.now["hits"] == 2


def access(path: str = "/", status: int = 200, **more: Any) -> bytes:
    return line(day="02/Mar/2026", clock="12:00:00", path=path, status=status, **more)


def test_access_lines_are_counted_like_in_the_tables() -> None:
    own = "https://www.shop.example/"
    view = View("access").add(
        access("/basket", agent="Firefox", referrer=own),
        access("/site.css", agent="Firefox", referrer=own),
        access("/", agent="Firefox", referrer="https://search.example/?q=1"),
        access("/", agent="curl/8"),
        access("/gone", 404, agent="Chrome"),
        b"#Software: Microsoft Internet Information Services 10.0",
    )
    assert (view.now["hits"], view.now["errors"], view.now["online"]) == (5, 1, 2)
    assert view.lists == {
        "Pages": {"/": 1, "/basket": 1},
        "Errors by status": {"404": 1},
        "Sources": {"search.example": 1},
    }


def test_a_line_that_was_sent_twice_is_counted_once() -> None:
    view = View("access").add(access(), access(), file="a.log")
    view.back(2)
    view.add(access(), access(), access(), file="a.log").add(access(), file="b.log")
    assert view.now["hits"] == 4


def test_a_new_topic_may_begin_with_the_same_offsets() -> None:
    view = View("access").add(access(), access())
    view.back(2)
    view.reader.forget()
    assert view.add(access(), access()).now["hits"] == 4


def entry(clock: str, text: str, program: str = "sshd[7]") -> bytes:
    return f"2026-03-02T{clock}Z gate {program}: {text}".encode()


def test_log_lines_are_counted_like_in_the_tables() -> None:
    view = View("logs").add(
        entry("11:35:00", "Accepted password for alice from 10.0.0.7 port 22 ssh2"),
        entry("11:59:00", "Accepted password for alice from 10.0.0.8 port 24 ssh2"),
        *[entry("11:58:00", f"ERROR no answer after {each} ms", "shop[9]") for each in range(40)],
    )
    assert view.now["hits"] == 42
    lists = view.lists
    assert lists["Components"] == {"shop": 40, "sshd": 2}
    assert list(lists["Messages"].values()) == [40, 2]
    assert list(lists["Bursts"].values()) == [40]
    assert list(lists["Bursts"]) == [next(iter(lists["Messages"]))]


HOSTILE = [
    None,
    b"",
    b"\xff\xfe\x00",
    b"{" * 10_000,
    b'{"id": 1e999}',
    b'{"received": 99999999999999999999}',
    b"\x00" * 1_000_000,
    b'{"resourceLogs":[{"scopeLogs":' + b"[" * 5_000,
    "\ud800".encode("utf-8", "surrogatepass"),
    b'1.2.3.4 - - [31/Feb/2026:99:99:99 +9999] "' + b"\x1b[2J" * 99 + b'" 999 -',
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at_ms", [NOW_MS, -(2**60), -1, 2**62, None])
def test_hostile_records_are_rejected_and_the_others_counted(kind: Kind, at_ms: int | None) -> None:
    good = {"events": stored("1"), "access": access(), "logs": entry("12:00:00", "hello")}[kind]
    view = View(kind).add(*HOSTILE, at_ms=at_ms).add(good)
    now = view.now
    assert now["hits"] + now["rejected"] + now["older"] == len(HOSTILE) + 1
    assert now["hits"] >= 1
    if kind != "logs":  # there, any text is a message
        assert now["hits"] == 1
    view.reader.lists(view.counts)


@pytest.mark.parametrize("kind", KINDS)
@given(st.lists(st.binary() | st.text().map(str.encode), min_size=1, max_size=5))
def test_any_bytes_are_a_hit_or_rejected(kind: Kind, values: list[bytes]) -> None:
    view = View(kind).add(*values)
    now = view.now
    is_directive = [value.startswith(b"#") for value in values]
    counted = now["hits"] + now["rejected"] + now["older"]
    assert len(values) - sum(is_directive) <= counted <= len(values)


class Fragile:
    """Fails as long as a batch contains one record."""

    columns = ("page",)

    def rows(self, records: pa.Table) -> pl.DataFrame:
        values = records["value"].to_pylist()
        if b"bad" in values:
            raise ValueError("bad")
        return pl.DataFrame(
            [(NOW_MS, None, False, False, "/")] * len(values),
            schema={
                "time_ms": pl.Int64,
                "visitor": pl.String,
                "is_error": pl.Boolean,
                "is_rejected": pl.Boolean,
                "page": pl.String,
            },
            orient="row",
        )

    def forget(self) -> None: ...

    def lists(self, counts: LastHalfHour) -> list[Leaders]:
        return []


def test_of_a_batch_that_fails_only_the_cause_is_rejected() -> None:
    view = View("events")
    view.reader = Fragile()
    view.counts = LastHalfHour(Fragile.columns)
    now = view.add(*[b"good"] * 5, b"bad", *[b"good"] * 2).now
    assert (now["hits"], now["rejected"]) == (7, 1)
