"""CO-1: fetched records as a table; a missing library and damaged data are named."""

from __future__ import annotations

import sys

import pytest

from barnabas.client.consumer.fetched import FetchedBytes
from barnabas.client.errors import MissingLibrary
from barnabas.errors import CorruptData
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition

pytest.importorskip("pyarrow")

from barnabas.client.consumer.tables import PANDAS, require, table_of

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def fetched(*values: bytes | None, offset: int = 0) -> FetchedBytes:
    builder = BatchBuilder()
    for number, value in enumerate(values):
        builder.append(1_000 + number, None, value, [("h", b"1")] if value is None else ())
    count = len(values)
    return FetchedBytes(memoryview(builder.build()), count, 0, count, offset, count)


def test_a_table_has_the_records_from_the_position_on() -> None:
    chunks = {T0: fetched(b"a", b"b", None, offset=1), T1: fetched(b"c")}
    table = table_of(chunks, with_headers=True, check_crcs=True)
    rows = table.drop(["timestamp", "topic"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (0, 1, 0, None, b"b", None),
        (0, 2, 0, None, None, [{"key": "h", "value": b"1"}]),
        (1, 0, 0, None, b"c", None),
    ]
    assert table["timestamp"].cast("int64").to_pylist() == [1_001, 1_002, 1_000]
    assert table_of({}, with_headers=False, check_crcs=True).num_rows == 0


def test_damaged_data_are_named_unless_checksums_are_not_wanted() -> None:
    damaged = bytearray(fetched(b"a").records)
    damaged[-2] ^= 1
    chunk = fetched(b"a")._replace(records=memoryview(bytes(damaged)))
    with pytest.raises(CorruptData, match="partition t-0: the batch at offset 0 fails"):
        table_of({T0: chunk}, with_headers=False, check_crcs=True)
    assert table_of({T0: chunk}, with_headers=False, check_crcs=False).num_rows == 1


@pytest.mark.parametrize("name", PANDAS)
def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    wanted = rf"poll_pandas needs {name}, .*pip install .*pyarrow>=.*numpy>="
    with pytest.raises(MissingLibrary, match=wanted):
        require("poll_pandas", PANDAS)
