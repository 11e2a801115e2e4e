"""Defines the interface for processing a batch of records, and its results.

    records ─▶ part ─▶ finish ─┬▶ rows of the growing tables
                               └▶ parts of all other tables, merged

Spark runs `part` in its tasks (`one_pass.py`) and `finish` in the driver.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline.layout import Layout
from barnabas_pipeline.places import Positions
from barnabas_pipeline.view import View

if TYPE_CHECKING:
    from pyspark_barnabas.delta.files import DataFile


class Part(NamedTuple):
    """The result of one task."""

    rows: dict[str, pa.Table]  # of the growing tables
    parts: dict[str, pl.DataFrame]  # of the merged tables
    left: pa.Table | None = None  # rows for the driver to finish


class Outcome(NamedTuple):
    """The combined result of a batch's tasks."""

    files: dict[str, list[DataFile]]  # of the growing tables, written by the tasks
    parts: dict[str, pl.DataFrame]  # of the merged tables, merged
    letters: pa.Table  # the rows of the dead letters, for their topic
    left: pa.Table | None = None  # in no particular order
    rows: Mapping[str, pa.Table] = {}  # of the growing tables, still to be written


class Work(Protocol):
    """Defines a pipeline's work on a batch, given the previous state."""

    def part(self, records: pa.Table, seen: Positions) -> Part:
        """Process records.

        This runs in the tasks, which receive the work pickled. `seen`: the positions before the
        batch.
        """
        ...

    def finish(self, found: Outcome) -> Outcome:
        """Process `Outcome.left` in the driver, and return new rows of growing tables in
        `Outcome.rows`.

        The result must not depend on the distribution of records over tasks.
        """
        ...


class Definition(Protocol):
    """A pipeline's definition."""

    @property
    def name(self) -> str: ...

    @property
    def layout(self) -> Layout: ...

    def work(self, before: View | None) -> Work:
        """Return the work on the batch that follows this state. The state is None before the first
        batch.
        """
        ...
