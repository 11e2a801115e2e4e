"""Defines the columns of a topic, which are the same as in the Kafka connector.

The two formats are therefore interchangeable. Users may pass a schema with `.schema(...)`, but it
must be this one, because no other column could be filled.
"""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.errors import ConfigError

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


RECORD_BATCHES = pa.schema([pa.field("batch", pa.binary())])
"""The schema with the option `recordBatches`, with which each row contains an Arrow IPC stream of
ordinary rows."""


def read_schema(include_headers: bool, record_batches: bool = False) -> StructType:
    if record_batches:
        return StructType([StructField("batch", BinaryType())])
    schema = StructType(
        [
            StructField("key", BinaryType()),
            StructField("value", BinaryType()),
            StructField("topic", StringType()),
            StructField("partition", IntegerType()),
            StructField("offset", LongType()),
            StructField("timestamp", TimestampType()),
            StructField("timestampType", IntegerType()),
        ]
    )
    return schema.add("headers", _HEADERS) if include_headers else schema


def check_read_schema(
    given: StructType, include_headers: bool, record_batches: bool = False
) -> None:
    """Raise `ConfigError` unless `given` is this format's schema."""
    own = read_schema(include_headers, record_batches)
    # This ignores nullability, which simpleString omits and users need not repeat.
    if given.simpleString() != own.simpleString():
        raise ConfigError(
            f"format barnabas has the schema {own.simpleString()} and accepts no other, such as"
            f" {given.simpleString()}: leave .schema() out and cast the value column"
        )


def arrow_schema(include_headers: bool) -> pa.Schema:
    """Return `read_schema` as an Arrow schema, exactly as Spark expects it from a reader."""
    fields = [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("timestampType", pa.int32()),
    ]
    if include_headers:
        header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
        fields.append(pa.field("headers", pa.list_(pa.field("element", header))))
    return pa.schema(fields)


def check_write_schema(given: StructType, topic: str | None) -> None:
    """Raise `ConfigError` if a column is missing or has the wrong type.

    As in the connector, other columns are ignored, so that rows can be written in the form in which
    they were read.
    """
    columns = {field.name.lower(): field.dataType.simpleString() for field in given.fields}
    if "value" not in columns:
        raise ConfigError(f"a column named value is missing; the columns are {', '.join(columns)}")
    if topic is None and "topic" not in columns:
        raise ConfigError("no topic to write to: give the option topic, or a column named topic")
    for name, allowed in _WRITE_TYPES.items():
        if name in columns and columns[name] not in allowed:
            raise ConfigError(
                f"column {name} is {columns[name]}, but must be {' or '.join(allowed)}"
            )


_WRITE_TYPES = {
    "topic": ("string",),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": (_HEADERS.simpleString(),),
    "partition": ("int",),
}
