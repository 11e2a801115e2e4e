"""SP-3: columns of a Delta table, nested ones too: what is refused, and by which name."""

from __future__ import annotations

from pathlib import Path

import deltalake
import polars
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyspark.sql import types as spark

from barnabas.errors import ConfigError
from pyspark_barnabas.delta.schema import arrow_schema
from pyspark_barnabas.delta.table import Table
from tests.kit.pipeline.delta_tables import files, of_batch, options_of, read

ITEM = pa.struct([("price", pa.int64())])
NESTED = pa.schema(
    [
        ("number", pa.int64()),
        ("one", ITEM),
        ("items", pa.list_(pa.field("element", ITEM))),
        ("prices", pa.map_(pa.string(), ITEM)),
    ]
)


def nested(price: pa.DataType, *more: pa.Field) -> pa.Schema:
    item = pa.struct([("price", price), *more])
    return pa.schema(
        [
            ("number", pa.int64()),
            ("one", item),
            ("items", pa.list_(pa.field("element", item))),
            ("prices", pa.map_(pa.string(), item)),
        ]
    )


def only(schema: pa.Schema, name: str) -> pa.Schema:
    """`NESTED`, but the column `name` is that of `schema`."""
    return pa.schema([schema.field(name) if each.name == name else each for each in NESTED])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of nested columns with a row."""
    options = options_of(tmp_path / "t")
    row = {"number": 1, "one": {"price": 1}, "items": [{"price": 2}], "prices": [("a", None)]}
    found = files(options, [row], NESTED)
    Table(of_batch(options, 0)).commit(NESTED, found, overwrite=False, query="q")
    return tmp_path / "t"


PLACES = (("one", "one.price"), ("items", "items.element.price"), ("prices", "prices.value.price"))


@pytest.mark.parametrize(("column", "place"), PLACES)
def test_sp_3_another_type_within_a_column_is_named(path: Path, column: str, place: str) -> None:
    options = options_of(path, mergeSchema="true")
    Table(options).check(NESTED)
    with pytest.raises(ConfigError, match=rf"column {place} is string, but long in the table"):
        Table(options).check(only(nested(pa.string()), column))
    with pytest.raises(ConfigError, match=rf"column {place} is struct, but long in the table"):
        Table(options).check(only(nested(ITEM), column))


@pytest.mark.parametrize(("column", "place"), PLACES)
def test_sp_3_a_new_field_within_a_column_is_named(path: Path, column: str, place: str) -> None:
    wider = only(nested(pa.int64(), pa.field("currency", pa.string())), column)
    new = place.replace("price", "currency") if column != "prices" else "prices.value.currency"
    with pytest.raises(ConfigError, match=rf"no column {new}:"):
        Table(options_of(path)).check(wider)
    with pytest.raises(ConfigError, match="ignores case"):
        Table(options_of(path)).check(
            only(nested(pa.int64(), pa.field("Price", pa.int8())), column)
        )
    merging = options_of(path, mergeSchema="true")
    Table(merging).check(wider)


def test_sp_3_new_fields_are_added_where_they_belong(path: Path) -> None:
    wider = nested(pa.int64(), pa.field("currency", pa.string()))
    item = {"price": 3, "currency": "EUR"}
    row = {"number": 2, "one": item, "items": [item], "prices": [("b", item)]}
    merging = of_batch(options_of(path, mergeSchema="true"), 1)
    found = files(merging, [row], wider)
    assert Table(merging).commit(wider, found, overwrite=False, query="q")
    first, second = read(path)
    assert second == row and first["items"] == [{"price": 2, "currency": None}]
    assert polars.read_delta(str(path)).sort("number")["one"].to_list() == [
        {"price": 1, "currency": None},
        item,
    ]
    # And rows without that field fit as before.
    narrow = of_batch(options_of(path), 2)
    rows = [{"number": 3, "one": {"price": 1}, "items": [{"price": 2}], "prices": []}]
    found = files(narrow, rows, NESTED)
    assert Table(narrow).commit(NESTED, found, overwrite=False, query="q")
    assert read(path)[2]["one"] == {"price": 1, "currency": None}


@pytest.mark.parametrize(
    "kind",
    [
        pa.duration("us"),
        pa.time64("us"),
        pa.null(),
        pa.uint32(),
        pa.timestamp("ns"),
        pa.decimal256(40, 2),
        pa.float16(),
    ],
    ids=str,
)
def test_sp_3_a_type_that_delta_has_not_is_named(tmp_path: Path, kind: pa.DataType) -> None:
    table = Table(options_of(tmp_path / "t"))
    for column, place in PLACES:
        with pytest.raises(ConfigError, match=rf"column {place} is .*not a type of Delta"):
            table.check(only(nested(kind), column))
    key = NESTED.append(pa.field("keys", pa.map_(pa.time64("us"), pa.int8())))
    with pytest.raises(ConfigError, match=r"column keys.key is time64"):
        table.check(key)


def test_sp_3_a_type_that_arrow_has_not_is_named() -> None:
    for kind in (spark.CalendarIntervalType(), spark.YearMonthIntervalType()):
        schema = spark.StructType(
            [spark.StructField("a", spark.ArrayType(spark.StructType().add("b", kind)))]
        )
        with pytest.raises(ConfigError, match=rf"column a is .*b:{kind.simpleString()}"):
            arrow_schema(schema)


def test_sp_3_a_variant_is_refused_and_not_stored_as_what_it_is_made_of(tmp_path: Path) -> None:
    schema = spark.StructType().add("a", spark.ArrayType(spark.VariantType()))
    with pytest.raises(ConfigError, match=r"column a.element is a variant"):
        Table(options_of(tmp_path / "t")).check(arrow_schema(schema))


def test_sp_3_names_that_differ_in_case_alone_are_refused(tmp_path: Path) -> None:
    options = options_of(tmp_path / "t", mergeSchema="true")
    twice = pa.schema([("number", pa.int64()), ("Number", pa.int64())])
    with pytest.raises(ConfigError, match="number and Number"):
        Table(options).check(twice)
    deltalake.DeltaTable.create(str(tmp_path / "t"), deltalake.Schema.from_arrow(twice.remove(1)))
    with pytest.raises(ConfigError, match="Number is number in the table"):
        Table(options).check(twice.remove(0))


@pytest.mark.parametrize("partition_by", ["number", ""])
def test_sp_3_what_may_not_be_null_is_not(tmp_path: Path, partition_by: str) -> None:
    own = pa.schema([pa.field("number", pa.int64(), nullable=False), ("day", pa.string())])
    deltalake.DeltaTable.create(
        str(tmp_path / "t"), deltalake.Schema.from_arrow(own), partition_by=partition_by or None
    )
    options = options_of(tmp_path / "t")
    given = pa.schema([("number", pa.int64()), ("day", pa.string())])
    layout = Table(options).check(given)
    assert layout.required == {"number"}
    from pyspark_barnabas.delta.files import FileWriter
    from pyspark_barnabas.delta.storage import filesystem

    writer = FileWriter(filesystem(options), given, *layout)
    writer.write(pa.RecordBatch.from_pylist([{"number": 1, "day": None}], schema=given))
    with pytest.raises(ConfigError, match="column number is null"):
        writer.write(pa.RecordBatch.from_pylist([{"number": None, "day": ""}], schema=given))
    writer.discard()
    assert not list((tmp_path / "t").rglob("*.parquet"))
    with pytest.raises(ConfigError, match="number"):  # missing, or nothing to partition by
        Table(options).check(pa.schema([("day", pa.string())]))


def test_sp_3_nested_fields_that_may_not_be_null_are_checked_by_the_schema(tmp_path: Path) -> None:
    item = pa.struct([pa.field("price", pa.int64(), nullable=False)])
    own = pa.schema([("items", pa.list_(pa.field("element", item, nullable=False)))])
    deltalake.DeltaTable.create(str(tmp_path / "t"), deltalake.Schema.from_arrow(own))
    table = Table(options_of(tmp_path / "t"))
    table.check(own)
    for kind, place in (
        (pa.list_(pa.field("element", item)), "items.element may"),
        (pa.list_(pa.field("element", ITEM, nullable=False)), "items.element.price may"),
    ):
        with pytest.raises(ConfigError, match=place):
            table.check(pa.schema([("items", kind)]))


def test_sp_3_columns_unfit_for_partitioning_are_refused_at_once(tmp_path: Path) -> None:
    schema = pa.schema([("number", pa.int64()), ("real", pa.float64())])
    with pytest.raises(ConfigError, match="real is double"):
        Table(options_of(tmp_path / "t", partitionBy="real")).check(schema)
    with pytest.raises(ConfigError, match="no column 'day'"):
        Table(options_of(tmp_path / "t", partitionBy="day")).check(schema)
    with pytest.raises(ConfigError, match="none is left"):
        Table(options_of(tmp_path / "t", partitionBy="number")).check(schema.remove(1))
    deltalake.DeltaTable.create(
        str(tmp_path / "t"), deltalake.Schema.from_arrow(schema), partition_by=["real"]
    )
    with pytest.raises(ConfigError, match="real is double"):
        Table(options_of(tmp_path / "t")).check(schema)


@pytest.mark.parametrize("demand", ["constraint", "invariant", "mapping", "generated"])
def test_sp_3_unchecked_demands_of_a_table_on_writers_are_refused(
    tmp_path: Path, demand: str
) -> None:
    said = {
        "invariant": {"delta.invariants": '{"expression": {"expression": "number > 0"}}'},
        "generated": {"delta.generationExpression": "1"},
    }
    number = deltalake.Field("number", "long", metadata=said.get(demand))
    schema = deltalake.Schema([deltalake.Field("day", "string"), number])
    table = deltalake.DeltaTable.create(str(tmp_path / "t"), schema)
    if demand == "constraint":
        table.alter.add_constraint({"positive": "number > 0"})
    if demand == "mapping":
        # deltalake makes no such table: as Spark's Delta leaves one.
        log = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
        log.write_text(
            log.read_text().replace(
                '"configuration":{', '"configuration":{"delta.columnMapping.mode":"name"'
            )
        )
    with pytest.raises(ConfigError, match=r"the table"):
        Table(options_of(tmp_path / "t")).check(
            pa.schema([("day", pa.string()), ("number", pa.int64())])
        )
