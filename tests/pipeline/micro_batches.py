"""Micro-batches of the exactly-once sink without Spark: what its tasks and its driver run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.types import BinaryType, StructType

from pyspark_barnabas.exactly_once import commit, transactional_id_of
from pyspark_barnabas.options import SinkOptions, sink_options
from pyspark_barnabas.rows import Columns
from pyspark_barnabas.stager import stage
from pyspark_barnabas.staging import StagedBatch

SCHEMA = StructType().add("key", BinaryType()).add("value", BinaryType())
COLUMNS = Columns.of(SCHEMA)


def options_of(servers: str, **options: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": servers, "exactlyOnce": "true", **options}
    return sink_options(given)


def query_of(options: SinkOptions) -> str:
    """Each test has a topic, and a query that writes to it."""
    return f"of-{options.topic}"


def task(
    options: SinkOptions, values: Sequence[bytes], keys: Sequence[bytes | None] | None = None
) -> list[StagedBatch]:
    """Stage the values; returns what a task hands to the driver."""
    name = transactional_id_of(options, query_of(options))
    return asyncio.run(stage(options, COLUMNS, name, _rows(values, keys)))


def end(
    options: SinkOptions, batch: int, *staged: list[StagedBatch], query: str | None = None
) -> bool:
    """Commit a micro-batch of these tasks; whether it was not committed before."""
    everything = [each for one in staged for each in one]
    return asyncio.run(commit(options, query or query_of(options), batch, everything))


def _rows(values: Sequence[bytes], keys: Sequence[bytes | None] | None) -> Iterator[object]:
    """Two record batches, as a task gets them."""
    columns = [pa.array(keys or [None] * len(values), pa.binary()), pa.array(values, pa.binary())]
    whole = pa.RecordBatch.from_arrays(columns, names=["key", "value"])
    half = len(values) // 2
    return iter([whole.slice(0, half), whole.slice(half)])
