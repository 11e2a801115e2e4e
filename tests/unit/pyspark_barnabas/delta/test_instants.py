"""SP-3: a table that is partitioned by times has the instants of the rows, in every zone."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars
import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from barnabas.errors import ConfigError
from pyspark_barnabas.delta.compaction import compact
from pyspark_barnabas.delta.files import FileWriter, partition_texts
from pyspark_barnabas.delta.storage import filesystem
from pyspark_barnabas.delta.table import Table
from tests.kit.pipeline.delta_tables import files, of_batch, options_of, read

UTC = datetime.UTC
ZONES = ("UTC", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "+05:30")

INSTANTS = (
    datetime.datetime(2026, 1, 1, tzinfo=UTC),
    datetime.datetime(2026, 11, 1, 5, 30, tzinfo=UTC),  # 01:30 in New York, in summer time,
    datetime.datetime(2026, 11, 1, 6, 30, tzinfo=UTC),  # and an hour later 01:30 again
    datetime.datetime(2026, 3, 8, 6, 59, 59, 999_999, tzinfo=UTC),  # the last before 02:00 there,
    datetime.datetime(2026, 3, 8, 7, tzinfo=UTC),  # and the next, which is 03:00
    datetime.datetime(1960, 7, 1, 3, 4, 5, 123_456, tzinfo=UTC),
    datetime.datetime(1883, 11, 18, 16, 59, 59, tzinfo=UTC),  # a zone of odd seconds
    datetime.datetime(1, 1, 1, tzinfo=UTC),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    None,
)
WALL = (
    datetime.datetime.fromisoformat("2026-03-08 02:30"),  # not a time in New York
    datetime.datetime.fromisoformat("2026-11-01 01:30"),  # two of them
    datetime.datetime.fromisoformat("1960-07-01 00:00:00.500000"),
    None,
)


def micros(*zone: str) -> pa.DataType:
    return pa.timestamp("us", *zone)


def table_of(path: Path, rows: list[dict[str, Any]], schema: pa.Schema, zone: str) -> None:
    """Rows as Spark hands them over in a session of this zone; the table's schema is in UTC."""
    kinds = [micros(zone) if each.type == micros("UTC") else each.type for each in schema]
    session = pa.schema(list(zip(schema.names, kinds, strict=True)))
    by = ",".join(name for name in schema.names if name != "number")
    options = of_batch(options_of(path, partitionBy=by), 0)
    found = files(options, rows, session)
    assert Table(options).commit(schema, found, overwrite=False, query="q")


@pytest.mark.parametrize("zone", ZONES)
def test_sp_3_a_partition_is_the_rows_instant_in_every_zone(tmp_path: Path, zone: str) -> None:
    schema = pa.schema([("number", pa.int64()), ("at", micros("UTC"))])
    rows = [{"number": number, "at": at} for number, at in enumerate(INSTANTS)]
    table_of(tmp_path / "t", rows, schema, zone)
    assert read(tmp_path / "t") == rows
    assert polars.read_delta(str(tmp_path / "t")).sort("number").to_dicts() == rows
    dataset = deltalake.DeltaTable(str(tmp_path / "t")).to_pyarrow_dataset()
    found = duckdb.from_arrow(dataset).order("number").fetchall()
    assert found[:6] == [(row["number"], row["at"]) for row in rows[:6]]
    for row in rows[:7]:
        instant = pa.scalar(row["at"], micros("UTC"))
        (same,) = dataset.to_table(filter=pa.dataset.field("at") == instant).to_pylist()
        assert same == row


@pytest.mark.parametrize("zone", ZONES)
def test_sp_3_partitions_by_several_columns_of_time(tmp_path: Path, zone: str) -> None:
    """Instants, times without a zone and dates, each with and without nulls in one task."""
    schema = pa.schema(
        [
            ("number", pa.int64()),
            ("at", micros("UTC")),
            ("wall", micros()),
            ("day", pa.date32()),
        ]
    )
    days = (datetime.date(1969, 12, 31), None, datetime.date(2026, 3, 8))
    rows = [
        {
            "number": number,
            "at": INSTANTS[number % len(INSTANTS)],
            "wall": WALL[number % len(WALL)],
            "day": days[number % len(days)],
        }
        for number in range(60)
    ]
    table_of(tmp_path / "t", rows, schema, zone)
    assert read(tmp_path / "t") == rows


@pytest.mark.parametrize("zone", ZONES)
def test_sp_3_times_that_are_no_partitions_are_stored_as_instants_too(
    tmp_path: Path, zone: str
) -> None:
    """Within structs, lists and maps as well, where a cast has to reach them."""

    def of(kind: pa.DataType) -> pa.Schema:
        return pa.schema(
            [
                ("number", pa.int64()),
                ("one", pa.struct([("at", kind)])),
                ("items", pa.list_(pa.struct([("at", kind)]))),
                ("named", pa.map_(pa.string(), pa.struct([("at", kind)]))),
                ("keyed", pa.map_(kind, pa.int64())),
            ]
        )

    rows = [
        {
            "number": number,
            "one": {"at": at},
            "items": [{"at": at}, None],
            "named": [("a", {"at": at}), ("b", None)],
            "keyed": [(at, number)] if at else [],
        }
        for number, at in enumerate(INSTANTS)
    ]
    options = of_batch(options_of(tmp_path / "t"), 0)
    writer = FileWriter(filesystem(options), of(micros("UTC")), ())
    writer.write(pa.RecordBatch.from_pylist(rows, schema=of(micros(zone))))
    written = writer.finish()
    assert Table(options).commit(of(micros("UTC")), written, overwrite=False, query="q")
    assert read(tmp_path / "t") == rows


def test_sp_3_the_log_has_what_delta_for_spark_writes() -> None:
    """Its version 4.0 in the text of an instant, which readers in any zone understand."""
    at = pa.array([INSTANTS[0], INSTANTS[5], None], micros("America/New_York"))
    assert partition_texts(at, "at").to_pylist() == [
        "2026-01-01T00:00:00.000000Z",
        "1960-07-01T03:04:05.123456Z",
        None,
    ]
    wall = pa.array(WALL, micros())
    assert partition_texts(wall, "wall").to_pylist() == [
        "2026-03-08 02:30:00.000000",
        "2026-11-01 01:30:00.000000",
        "1960-07-01 00:00:00.500000",
        None,
    ]
    seconds = pa.array([0], pa.timestamp("s", "America/New_York"))
    assert partition_texts(seconds, "at").to_pylist() == ["1970-01-01T00:00:00.000000Z"]


@pytest.mark.parametrize("kind", [micros("UTC"), micros(), pa.date32()], ids=str)
def test_sp_3_a_year_that_no_reader_knows_is_refused(kind: pa.DataType) -> None:
    days = pa.array([0, 4_000_000], pa.int32()).cast(pa.date32())
    far = days if kind == pa.date32() else days.cast(pa.timestamp("us")).cast(kind)
    with pytest.raises(ConfigError, match="column at has a time before the year 1 or after 9999"):
        partition_texts(far, "at")
    assert partition_texts(far.slice(0, 1), "at").null_count == 0
    assert partition_texts(pa.nulls(2, kind), "at").to_pylist() == [None, None]


def test_sp_3_compaction_keeps_which_instants_are_marked(tmp_path: Path) -> None:
    """Those without a mark may be wrong; merged under one, they could not be found any more."""
    path = tmp_path / "t"
    schema = pa.schema([("number", pa.int64()), ("at", micros("UTC"))])
    options = options_of(path, partitionBy="at")
    rows = [{"number": number, "at": INSTANTS[number % 2]} for number in range(8)]
    for batch in range(2):
        found = files(options, rows[4 * batch : 4 * batch + 4], schema)
        table = Table(of_batch(options, batch))
        assert table.commit(schema, found, overwrite=False, query="q")
    for start in (8, 12):
        rows += (more := [{**row, "number": row["number"] + start} for row in rows[:4]])
        deltalake.write_deltalake(
            str(path), pa.Table.from_pylist(more, schema=schema), mode="append"
        )
    assert len(deltalake.DeltaTable(str(path)).file_uris()) == 8
    assert compact(options) == (8, 4)
    assert read(path) == sorted(rows, key=lambda row: row["number"])
    partitions = {uri.split("/")[-2] for uri in deltalake.DeltaTable(str(path)).file_uris()}
    assert partitions == {
        "at=2026-01-01T00%3A00%3A00.000000Z",
        "at=2026-01-01%2000%3A00%3A00.000000",
        "at=2026-11-01T05%3A30%3A00.000000Z",
        "at=2026-11-01%2005%3A30%3A00.000000",
    }
    assert compact(options) == (0, 0)
