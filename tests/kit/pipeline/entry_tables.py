"""Tables of system logs with any entries, written without parsing lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.dataset as ds  # type: ignore[import-untyped]

from barnabas_pipeline.file_pass import MemoryView
from barnabas_pipeline.logs.counts import count_entries, merge
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.logs.schemas import ENTRIES, GROWING, MERGED
from barnabas_pipeline.one_pass import write
from barnabas_pipeline.schemas import DEAD_LETTERS
from barnabas_pipeline.tables import Tables
from barnabas_pipeline.work import Outcome
from tests.kit.pipeline.log_records import QUERY

Entry = Mapping[str, Any]


class EntryView(MemoryView):
    """Entries in files, and all other tables in memory, which is faster than tables on disk."""

    def __init__(
        self, directory: Path, files: Sequence[pa.Table], texts: Mapping[str, str]
    ) -> None:
        super().__init__(LOGS)
        self._files = directory / "entries"
        self.add(_outcome({name: str(directory / name) for name in GROWING}, files, texts))

    def dataset(self, name: str) -> Any:
        return ds.dataset(self._files, ENTRIES, format="parquet") if name == "entries" else None


def commit_entries(
    tables: Tables, batch: int, files: Sequence[pa.Table], texts: Mapping[str, str]
) -> None:
    """Commit a batch whose tasks write these files of entries.

    `texts`: those of templates, by their ids.
    """
    tables.commit(batch, QUERY, _outcome(tables.growing_paths(), files, texts))
    tables.conclude(batch, QUERY, None, {})


def _outcome(
    paths: Mapping[str, str], files: Sequence[pa.Table], texts: Mapping[str, str]
) -> Outcome:
    written = [file for each in files for file in write(paths["entries"], each, ENTRIES)]
    frames = [pl.DataFrame(pl.from_arrow(each)) for each in files]
    entries = pl.concat(frames).with_columns(pl.col("time").dt.epoch("us").alias("time_us"))
    counts = count_entries(entries)
    numbers = {name: number for number, name in enumerate(texts)}
    id_ = pl.col("template")
    counts["templates"] = counts["templates"].with_columns(
        id_.replace_strict(numbers, default=None, return_dtype=pl.Int64).alias("number"),
        id_.replace_strict(texts, default=None, return_dtype=pl.String).alias("began"),
        id_.replace_strict(texts, default=None, return_dtype=pl.String).alias("text"),
        pl.lit(0, pl.Int64).alias("wildcards"),
    )
    nothing = {name: pl.DataFrame(pl.from_arrow(of.empty_table())) for name, of in MERGED.items()}
    parts = {
        name: merge(name, pl.concat([nothing[name], counts[name].select(MERGED[name].names)]))
        for name in MERGED
        if name in counts
    }
    letters = DEAD_LETTERS.empty_table()
    return Outcome(
        files={
            "entries": written,
            "dead_letters": write(paths["dead_letters"], letters, GROWING["dead_letters"]),
        },
        parts={**nothing, **parts},
        letters=letters,
    )


def entry_table(entries: Sequence[Entry]) -> pa.Table:
    """Return entries as rows; columns that they lack are null."""
    rows = [{name: each.get(name) for name in ENTRIES.names} for each in entries]
    return pa.Table.from_pylist(rows, schema=ENTRIES)
