"""The columns that are read and written are the connector's (SP-1)."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T
from pyspark.sql.types import DataType, StructType

from barnabas.errors import ConfigError
from pyspark_barnabas.schema import check_read_schema, check_write_schema, read_schema

TEXT, BINARY, INT, LONG = T.StringType(), T.BinaryType(), T.IntegerType(), T.LongType()
HEADERS = read_schema(True)["headers"].dataType


def schema_of(**columns: DataType) -> StructType:
    return StructType([T.StructField(name, kind) for name, kind in columns.items()])


def test_only_the_formats_own_schema_is_read() -> None:
    check_read_schema(read_schema(True), True)
    with pytest.raises(ConfigError, match="accepts no other, such as struct<value:string>"):
        check_read_schema(schema_of(value=TEXT), False)


@pytest.mark.parametrize(
    ("columns", "topic"),
    [
        ({"value": BINARY}, "t"),
        ({"KEY": TEXT, "Value": TEXT, "Topic": TEXT}, None),
        ({"value": TEXT, "topic": TEXT, "partition": INT, "headers": HEADERS}, None),
        ({"value": BINARY, "topic": TEXT, "offset": LONG, "timestamp": T.TimestampType()}, None),
    ],
)
def test_what_can_be_written(columns: dict[str, DataType], topic: str | None) -> None:
    check_write_schema(schema_of(**columns), topic)


@pytest.mark.parametrize(
    ("columns", "topic", "message"),
    [
        ({"key": BINARY}, "t", "named value is missing; the columns are key"),
        ({"value": BINARY}, None, "give the option topic, or a column named topic"),
        ({"value": INT}, "t", "column value is int, but must be binary or string"),
        ({"value": BINARY, "topic": BINARY}, None, "column topic is binary, but must be string"),
        ({"value": BINARY, "partition": LONG}, "t", "column partition is bigint, but must be int"),
        ({"value": BINARY, "headers": T.MapType(TEXT, BINARY)}, "t", "column headers is map"),
    ],
)
def test_what_cannot_be_written_is_named(
    columns: dict[str, DataType], topic: str | None, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        check_write_schema(schema_of(**columns), topic)
