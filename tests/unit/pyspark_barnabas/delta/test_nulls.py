"""SP-3: nulls above fields that may not be null, in rows as Spark hands them over."""

from __future__ import annotations

import datetime
from pathlib import Path

import deltalake
import polars
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pytest

from barnabas.errors import ConfigError
from pyspark_barnabas.delta.compaction import compact
from pyspark_barnabas.delta.files import FileWriter
from pyspark_barnabas.delta.storage import filesystem
from pyspark_barnabas.delta.table import Table
from tests.kit.pipeline.delta_tables import of_batch, options_of, read

PRICE = pa.field("price", pa.int64(), nullable=False)
ITEM = pa.struct([PRICE])


def items(*prices: int | None) -> pa.Array:
    """Null where the price is: Spark has a null in the field as well, which may have none."""
    numbers = pa.array(prices, pa.int64())
    return pa.StructArray.from_arrays([numbers], fields=[PRICE], mask=pc.is_null(numbers))


def of_kind(kind: str) -> tuple[pa.Array, list[object]]:
    """Three rows, the last of which is null, and what is read of them."""
    item, three = {"price": 7}, items(7, None, 8)
    if kind == "struct":
        return items(7, 8, None), [item, {"price": 8}, None]
    if kind == "struct in struct":
        outer = [pa.field("inner", ITEM)]
        mask = pa.array([False, False, True])
        column = pa.StructArray.from_arrays([items(7, None, None)], fields=outer, mask=mask)
        return column, [{"inner": item}, {"inner": None}, None]
    if kind == "struct that may not be null in struct":
        outer = [pa.field("inner", ITEM, nullable=False)]
        mask = pa.array([False, False, True])
        column = pa.StructArray.from_arrays([items(7, 8, None)], fields=outer, mask=mask)
        return column, [{"inner": item}, {"inner": {"price": 8}}, None]
    ends = pa.array([0, None, 2, 3], pa.int32())  # the second row is null
    if kind == "array":
        type_ = pa.list_(pa.field("element", ITEM))
        column = pa.ListArray.from_arrays(ends, three, type=type_)
        return column, [[item, None], None, [{"price": 8}]]
    keys = pa.array(["a", "b", "c"])
    column = pa.MapArray.from_arrays(ends, keys, three, type=pa.map_(pa.string(), ITEM))
    return column, [[("a", item), ("b", None)], None, [("c", {"price": 8})]]


KINDS = ("struct", "struct in struct", "struct that may not be null in struct", "array", "map")


@pytest.mark.parametrize("is_there", [False, True], ids=["new", "that may not be null, too"])
@pytest.mark.parametrize("kind", KINDS)
def test_sp_3_a_null_above_a_field_that_may_not_be_null(
    tmp_path: Path, kind: str, is_there: bool
) -> None:
    path = tmp_path / "t"
    column, values = of_kind(kind)
    schema = pa.schema([("number", pa.int64()), ("nested", column.type)])
    batch = pa.RecordBatch.from_arrays([pa.array([0, 1, 2]), column], schema=schema)
    if is_there:
        deltalake.DeltaTable.create(str(path), deltalake.Schema.from_arrow(schema))
    for number in range(2):
        table = Table(of_batch(options_of(path), number))
        layout = table.check(schema)
        writer = FileWriter(filesystem(options_of(path)), schema, *layout)
        writer.write(batch)
        assert table.commit(schema, writer.finish(), overwrite=False, query="q")
    for _ in range(2):
        assert [row["nested"] for row in read(path)] == [each for each in values for _ in range(2)]
        if kind != "map":  # a list of structs to Polars
            found = polars.read_delta(str(path)).sort("number")["nested"].to_list()
            assert found == [each for each in values for _ in range(2)]
        compact(options_of(path))
    assert len(deltalake.DeltaTable(str(path)).file_uris()) == 1


def test_sp_3_a_null_in_a_field_that_may_not_be_null_is_refused(tmp_path: Path) -> None:
    """Of a schema that promises too much: there is no null above it."""
    path = tmp_path / "t"
    schema = pa.schema([("number", pa.int64()), ("nested", ITEM)])
    deltalake.DeltaTable.create(str(path), deltalake.Schema.from_arrow(schema))
    layout = Table(options_of(path)).check(schema)
    writer = FileWriter(filesystem(options_of(path)), schema, *layout)
    column = pa.StructArray.from_arrays([pa.array([None, 1])], fields=[PRICE])
    writer.write(pa.RecordBatch.from_arrays([pa.array([0, 1]), column], schema=schema))
    with pytest.raises(ConfigError, match="'price' is declared non-nullable"):
        writer.finish()
    writer.discard()
    assert not list(path.glob("*.parquet"))


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_sp_3_such_a_null_beside_an_instant_of_the_sessions_zone(tmp_path: Path, zone: str) -> None:
    path = tmp_path / "t"

    def of(zone: str) -> pa.DataType:
        return pa.struct([pa.field("at", pa.timestamp("us", zone), nullable=False)])

    schema = pa.schema([("number", pa.int64()), ("nested", of("UTC"))])
    deltalake.DeltaTable.create(str(path), deltalake.Schema.from_arrow(schema))
    table = Table(of_batch(options_of(path), 0))
    writer = FileWriter(filesystem(options_of(path)), schema, *table.check(schema))
    at = pa.array([datetime.datetime(1960, 7, 1, 1, 2, 3, 4, datetime.UTC), None])
    column = pa.StructArray.from_arrays(
        [at.cast(pa.timestamp("us", zone))], fields=list(of(zone)), mask=pc.is_null(at)
    )
    writer.write(pa.RecordBatch.from_arrays([pa.array([0, 1]), column], ["number", "nested"]))
    assert table.commit(schema, writer.finish(), overwrite=False, query="q")
    assert [row["nested"] for row in read(path)] == [{"at": at[0].as_py()}, None]
