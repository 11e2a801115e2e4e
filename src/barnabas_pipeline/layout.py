"""Describes the tables of a pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]


class Layout(NamedTuple):
    """The tables of a pipeline, always including `dead_letters` and `files`."""

    application: str
    """The pipeline's name, as recorded in the tables' logs."""
    growing: Mapping[str, pa.Schema]
    """Tables whose rows are written once."""
    merged: Mapping[str, pa.Schema]
    """Tables to which each batch adds a part; readers merge the parts into rows."""
    merge: Callable[[str, pa.Table], pl.DataFrame]
    """Merges the parts of a table into rows."""
    newest_s: Callable[[Mapping[str, pl.DataFrame]], int | None]
    """Returns the time of the newest line in a batch's merged parts, in seconds since the epoch, or
    None if there is no line."""

    @property
    def all(self) -> Mapping[str, pa.Schema]:
        return {**self.growing, **self.merged}
