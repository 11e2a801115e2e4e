"""Records of lines and of OpenTelemetry's log records as entries and dead letters (LG-2)."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

from barnabas_formats.catalogue import catalogue
from barnabas_formats.otlp_request import ENCODING, OTLP_JSON, OTLP_PROTO
from barnabas_pipeline.accounts import Accounts, read_accounts
from barnabas_pipeline.logs.definition import LOGS, classify
from barnabas_pipeline.logs.log_records import AUTO, LINES
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from tests.kit.pipeline.log_records import RECEIVED, records, send, write
from tests.kit.pipeline.otlp_requests import AT_NS, AT_US, as_json, request

KNOWN = catalogue("system")
PROTO = OTLP_PROTO.encode()
TEXT = OTLP_JSON.encode()
RECEIVED_US = int(RECEIVED.timestamp() * 1e6)
LINE = b"2026-03-10 10:00:00,000 ERROR [main] a.B: a line"


def with_encodings(*sent: tuple[bytes | None, bytes | None], partition: int = 0) -> pa.Table:
    """Records of which each has a value, and a header with its encoding unless that is None."""
    made = records("a", [value or b"" for value, _ in sent], partition)
    headers = [
        [*row, *([{"key": ENCODING, "value": encoding}] if encoding is not None else [])]
        for row, (_, encoding) in zip(made["headers"].to_pylist(), sent, strict=True)
    ]
    values = pa.array([value for value, _ in sent], pa.binary())
    column = pa.array(headers, made.schema.field("headers").type)
    for name, array in (("value", values), ("headers", column)):
        made = made.set_column(made.schema.get_field_index(name), name, array)
    return made


def classified(*sent: tuple[bytes | None, bytes | None], encoding: str = LINES) -> list[Any]:
    return classify(with_encodings(*sent), {}, KNOWN, encoding).to_dicts()


def shop(*log_records: dict[str, Any]) -> LogsData:
    return request(*log_records, resource={"service.name": "shop", "host.name": "db"}, scope="a.B")


def test_lg_2_each_record_is_read_as_its_header_says() -> None:
    sent = shop({"time_unix_nano": AT_NS, "severity_number": 17, "body": "one"}, {"body": "two"})
    rows = classified(
        (sent.SerializeToString(), PROTO), (LINE, None), (as_json(sent), TEXT), (None, PROTO)
    )
    assert [(each["offset"], each["item"], each["message"]) for each in rows] == [
        *((0, 0, "one"), (0, 1, "two"), (1, None, "a line"), (2, 0, "one"), (2, 1, "two")),
        (3, None, None),
    ]
    assert rows[-1]["reason"] == "the record has no value"
    one = rows[0]
    assert {name: one[name] for name in ("format", "host", "component", "service", "level")} == {
        "format": "otlp",
        "host": "db",
        "component": "a.B",
        "service": "shop",
        "level": "ERROR",
    }
    assert (one["time_us"], rows[1]["time_us"]) == (AT_US, RECEIVED_US)
    assert {**rows[3], "offset": 0, "record": 0, "position": 0, "line": 1} == one
    assert rows[2]["host"] == "gate" and rows[2]["service"] is None


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        (LINES, [None, 0, None]),
        (AUTO, [0, 0, None]),
        (OTLP_PROTO, [0, "the record is not an OTLP request in protobuf", ""]),
        (OTLP_JSON, ["the record is not JSON in UTF-8", 0, ""]),
    ],
)
def test_lg_2_records_without_a_header(encoding: str, expected: list[Any]) -> None:
    sent = shop({"body": "one"})
    values = (sent.SerializeToString(), as_json(sent).replace(b": ", b":"), LINE)
    rows = classified(*((value, None) for value in values), encoding=encoding)
    for row, each in zip(rows, expected, strict=True):
        if isinstance(each, str):
            assert row["reason"] and each in row["reason"]
        else:
            assert (row["reason"], row["item"]) == (None, each)
            assert row["message"] == ("one" if each == 0 else row["message"])
    # What is neither is a raw line, and each header decides whatever the encoding is.
    headed = classified((values[1], TEXT), (values[0], PROTO), encoding=encoding)
    assert [each["message"] for each in headed] == ["one", "one"]


def test_an_encoding_that_does_not_exist_is_rejected() -> None:
    (row,) = classified((LINE, b"zipkin"))
    assert row["reason"] == "the header otlp.encoding is neither otlp_proto nor otlp_json"


def test_lg_2_an_unparsed_line_in_a_body_is_a_line_of_its_format() -> None:
    """As the Collector's filelog receiver sends them: without severity, and only observed."""
    observed = {"observed_time_unix_nano": AT_NS + 7_000_000_000}
    line = "2026-03-10 11:00:00,000 WARN [main] shop.Cart: empty"
    rows = classified(
        (
            shop(
                {**observed, "body": f"{line}\n\tat shop.Cart"},
                {**observed, "body": line, "time_unix_nano": AT_NS},
                {**observed, "body": line, "severity_number": 9},
                {**observed, "body": {"line": line}},
                {**observed, "body": "no format"},
            ).SerializeToString(),
            PROTO,
        )
    )
    own_us = AT_US // 3_600_000_000 * 3_600_000_000 + 3_600_000_000
    assert [(each["time_us"], each["level"], each["component"]) for each in rows] == [
        (own_us, "WARN", "shop.Cart"),
        (AT_US, "WARN", "shop.Cart"),
        (AT_US + 7_000_000, "INFO", "a.B"),
        (AT_US + 7_000_000, None, "a.B"),
        (AT_US + 7_000_000, None, "a.B"),
    ]
    assert [each["message"] for each in rows[:3]] == ["empty", "empty", line]
    assert rows[0]["more"] == "\tat shop.Cart" and {each["format"] for each in rows} == {"otlp"}


def test_lg_2_rejected_log_records_are_dead_letters_that_can_be_sent_again(tmp_path: Path) -> None:
    """SP-2: each log record is an entry, or in one dead letter; a record sent twice counts once."""
    late = {"time_unix_nano": 2**63, "body": "late"}
    sent = shop({"body": "one"}, late, {"body": "two"}, late)
    batch = with_encodings(
        (sent.SerializeToString(), PROTO), (b"\x0a\x05ab", PROTO), (b"{", TEXT), (LINE, None)
    )
    tables = Tables(tmp_path / "tables", LOGS)
    write(tables, 0, batch, send)
    # The first record once more, and at a new place its dead letter, as `replay` sends it.
    letters = Snapshot(tmp_path / "tables", LOGS).frame("dead_letters").sort("offset")
    assert letters["reason"].to_list() == [
        "the log record has an impossible time (otlp)",
        "the record is not an OTLP request in protobuf",
        "the record is not JSON in UTF-8",
    ]
    assert letters["value"].to_list()[1:] == [b"\x0a\x05ab", b"{"]
    part = letters["value"][0]
    assert LogsData.FromString(part) == shop(late, late)
    fixed = part.replace((2**63).to_bytes(8, "little"), AT_NS.to_bytes(8, "little"))
    again = with_encodings(*([(b"", None)] * 4), (fixed, PROTO)).slice(4)
    write(tables, 1, pa.concat_tables([batch.slice(0, 1), again]), send)
    snapshot = Snapshot(tmp_path / "tables", LOGS)
    assert read_accounts(snapshot)[0] == Accounts(read=9, valid=5, dead_letters=3, sent_twice=1)
    entries = snapshot.frame("entries").sort("offset", "item")
    assert entries.select("offset", "item", "message").rows() == [
        *((0, 0, "one"), (0, 2, "two"), (3, None, "a line"), (4, 0, "late"), (4, 1, "late")),
    ]
    assert entries["time"][3] == RECEIVED.replace(month=3, day=10, hour=10) + timedelta(
        microseconds=123_456
    )


def test_lg_2_templates_do_not_depend_on_tasks(tmp_path: Path) -> None:
    """SP-2: log records of one record are learnt in its order, whichever task has it."""
    batches = [
        pa.concat_tables(
            [
                with_encodings(
                    *(
                        (shop(*bodies(number, partition)).SerializeToString(), PROTO)
                        for number in range(20)
                    ),
                    partition=partition,
                )
                for partition in range(3)
            ]
        )
    ]
    found = []
    for tasks in (1, 3):
        directory = tmp_path / str(tasks)
        for number, batch in enumerate(batches):
            write(Tables(directory, LOGS), number, batch, send, tasks=tasks)
        order = ["partition", "offset", "item"]
        found.append(Snapshot(directory, LOGS).frame("entries").sort(order))
    assert found[0].equals(found[1])
    assert found[0].height == 3 * 20 * 50 and found[0]["template"].null_count() == 0
    assert found[0].select("partition", "offset", "item").is_unique().all()


def bodies(number: int, partition: int) -> list[dict[str, Any]]:
    words = ("order", "cart", "payment", "user", "mail")
    return [
        {"body": f"{words[n % 5]} {words[n % 3]} n{n} of {number} failed in {partition} ms"}
        for n in range(50)
    ]


def test_a_task_without_otlp_has_a_row_for_each_record() -> None:
    found = classify(with_encodings((LINE, None), (None, None), (LINE, b"")), {}, KNOWN)
    assert found["record"].to_list() == [0, 1, 2]
    assert found.select(pl.col("item", "letter").null_count()).row(0) == (3, 3)
