"""Delta tables of numbered rows: written, committed, read and aged."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute  # type: ignore[import-untyped]

from pyspark_barnabas.delta.files import DataFile, FileWriter
from pyspark_barnabas.delta.options import DeltaOptions, delta_options
from pyspark_barnabas.delta.storage import filesystem
from pyspark_barnabas.delta.table import Table

SCHEMA = pa.schema([("number", pa.int64()), ("day", pa.string())])


def options_of(path: Path, **options: str) -> DeltaOptions:
    return delta_options({"path": str(path), **options})


def of_batch(options: DeltaOptions, batch: int, query: str = "q") -> DeltaOptions:
    return options._replace(app_id=options.app_id or query, version=batch)


def files(
    options: DeltaOptions, rows: Sequence[dict[str, Any]], schema: pa.Schema = SCHEMA
) -> list[DataFile]:
    table = Table(options).open()
    of_table = options.partition_by if table is None else table.metadata().partition_columns
    writer = FileWriter(filesystem(options), schema, tuple(of_table))
    batch = pa.RecordBatch.from_pylist(list(rows), schema=schema)
    writer.write(batch.slice(0, len(rows) // 2))
    writer.write(batch.slice(len(rows) // 2))
    return writer.finish()


def rows(start: int, end: int) -> list[dict[str, Any]]:
    return [{"number": number, "day": f"d{number % 3}"} for number in range(start, end)]


def commit(options: DeltaOptions, batch: int, found: list[DataFile], query: str = "q") -> bool:
    table = Table(of_batch(options, batch, query))
    return table.commit(SCHEMA, found, overwrite=False, query=query)


def read(path: Path) -> list[dict[str, Any]]:
    table = deltalake.DeltaTable(str(path)).to_pyarrow_table()
    found: list[dict[str, Any]] = table.to_pylist()
    return sorted(found, key=lambda row: (row["number"] is None, row["number"]))


ODD = ["", "a b", "ü/é", "100%", "=", "..", None, "x" * 200]


HOUR_S = 3_600


def age(directory: Path, hours: float) -> None:
    """As if everything that is there was written so long ago."""
    then = time.time() - hours * HOUR_S
    for path in directory.rglob("*"):
        if path.is_file():
            os.utime(path, (then, then))


WEEK_S = 7 * 24 * 3_600


LONG_AGO_S = WEEK_S + 3_600


def outlive_retention(directory: Path) -> None:
    """Every file that is there now is older than a vacuum keeps."""
    then_s = time.time() - LONG_AGO_S
    for path in directory.rglob("*.parquet"):
        os.utime(path, (then_s, then_s))


def data_files(directory: Path) -> set[Path]:
    return {each for each in directory.rglob("part-*.parquet") if "_delta_log" not in each.parts}


def many_files(options: object) -> list[DataFile]:
    given = [{"number": number, "day": f"d{number}"} for number in range(40)]
    return files(options, given)  # type: ignore[arg-type]
