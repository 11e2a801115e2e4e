"""Recognises the ids of events that earlier batches have stored, whatever the time of the event.

For each event, only a hash of its id is kept in memory (8 bytes). If a hash is found, the table
decides. The hashes may therefore include ids that were never stored, because their batch failed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas_pipeline.arrow import scan, to_frame
from barnabas_pipeline.schemas import TIME
from barnabas_pipeline.tracking.schemas import EVENTS

MOST_IDS: Final = 50_000_000
"""The number of ids that are remembered, which take 400 MB. Beyond it, the oldest are forgotten, in
large groups. An older id is then recognised only if its event is within the batch's time span."""

_Hashes = npt.NDArray[np.uint64]


class KnownIds:
    """The ids of one table of events, to which only this process adds rows."""

    def __init__(self, most: int = MOST_IDS) -> None:
        self._most = most
        # Sorted, with the oldest first. Short ones are merged, so there are never many.
        self._runs: list[_Hashes] | None = None

    def find_stored(self, dataset: Any, events: pl.DataFrame) -> pl.Series:
        """Return the ids of these events that the table contains.

        `dataset`: the table before the batch, or None if it does not exist. `events` must have the
        columns `id` and `time`.
        """
        if self._runs is None:
            self._runs = []
            for batch in () if dataset is None else dataset.to_batches(columns=["id"]):
                self._add(_hashes(to_frame(batch)["id"]))
        ids = events["id"].unique()
        if dataset is None:
            return ids.clear()
        # An event that is repeated has its own time, so usually, few files have to be read.
        times = [pa.scalar(at, TIME) for at in (events["time"].min(), events["time"].max())]
        span = (pc.field("time") >= times[0]) & (pc.field("time") <= times[1])
        found = scan(dataset, EVENTS, ["id"], span & _is_any(ids))["id"]
        left = ids.filter(~ids.is_in(found.implode()))
        left = left.filter(self._has(_hashes(left)))
        if not len(left):
            return found
        return pl.concat([found, scan(dataset, EVENTS, ["id"], _is_any(left))["id"]])

    def add(self, ids: pl.Series) -> None:
        """Remember ids that are about to be stored."""
        self._add(_hashes(ids))

    def _add(self, hashes: _Hashes) -> None:
        if not len(hashes):
            return
        runs = self._runs = self._runs or []
        new = np.sort(hashes)
        while runs and len(runs[-1]) <= 2 * len(new) and len(new) < self._most // 8:
            new = np.sort(np.concatenate([runs.pop(), new]))
        runs.append(new)
        while sum(map(len, runs)) > self._most and len(runs) > 1:
            del runs[0]

    def _has(self, hashes: _Hashes) -> pl.Series:
        found = np.zeros(len(hashes), dtype=bool)
        for run in self._runs or ():
            places = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            found |= run[places] == hashes
        return pl.Series(found)


def _is_any(ids: pl.Series) -> Any:
    return pc.field("id").isin(ids.to_arrow(compat_level=pl.CompatLevel.oldest()))


def _hashes(ids: pl.Series) -> _Hashes:
    # The hashes never leave this process, so they may differ between versions of Polars.
    return ids.hash(seed=0).to_numpy()
