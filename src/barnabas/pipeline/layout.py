"""Which tables a pipeline fills."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]


class Layout(NamedTuple):
    """The tables of one pipeline; `dead_letters` and `files` are among those of each."""

    application: str
    """By which the tables' logs name the pipeline."""
    growing: Mapping[str, pa.Schema]
    """A row is written once."""
    merged: Mapping[str, pa.Schema]
    """A batch adds its part, and parts become rows when they are read."""
    merge: Callable[[str, pa.Table], pl.DataFrame]
    """The rows of a merged table that its parts come to."""
    newest_s: Callable[[Mapping[str, pl.DataFrame]], int | None]
    """Of a batch's merged parts: seconds since the epoch of the newest line; None without one."""

    @property
    def all(self) -> Mapping[str, pa.Schema]:
        return {**self.growing, **self.merged}
