"""Micro-batches of a query into a Delta table, without Spark; dies at the given point.

python -m tests.pipeline.delta_job TABLE PROGRESS BATCHES [STEP]

What a query's checkpoint is to Spark is the file PROGRESS here: the last batch that ended. STEP:
at which step of the first batch the process kills itself.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]

from pyspark_barnabas.delta.files import DataFile, FileWriter
from pyspark_barnabas.delta.options import DeltaOptions, delta_options
from pyspark_barnabas.delta.storage import filesystem
from pyspark_barnabas.delta.table import Table

STEPS = (
    "before its files",
    "between its files",
    "before its commit",
    "behind its commit",
    "behind its progress",
)
ROWS = 10
SCHEMA = pa.schema([("number", pa.int64())])


def main(path: str, progress: str, batches: str, step: str = "") -> None:
    done = Path(progress)
    first = int(done.read_text()) + 1 if done.exists() else 0
    for batch in range(first, int(batches)):
        fate = step if batch == first else ""
        run(path, batch, lambda at, fate=fate: die_at(at, fate))  # type: ignore[misc]
        done.with_suffix(".new").write_text(str(batch))
        done.with_suffix(".new").rename(done)
        die_at(STEPS[4], fate)


def run(path: str, batch: int, reached: Callable[[str], None]) -> None:
    options = delta_options({"path": path})._replace(app_id="q", version=batch)
    reached(STEPS[0])
    numbers = list(range(batch * ROWS, (batch + 1) * ROWS))
    tasks = 2 + os.getpid() % 3  # another number in each run
    files = []
    for task in range(tasks):
        files += write(options, numbers[task::tasks])
        reached(STEPS[1])
    reached(STEPS[2])
    Table(options).commit(SCHEMA, files, overwrite=False, query="q")
    reached(STEPS[3])


def write(options: DeltaOptions, numbers: list[int]) -> list[DataFile]:
    writer = FileWriter(filesystem(options), SCHEMA, ())
    writer.write(pa.RecordBatch.from_pydict({"number": numbers}, schema=SCHEMA))
    return writer.finish()


def die_at(step: str, fate: str) -> None:
    if step == fate:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
