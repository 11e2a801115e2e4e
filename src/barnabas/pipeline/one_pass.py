"""What a Spark task does with its records: the one pass over a batch.

    records ─▶ classified ─┬▶ files of events and dead letters, which the driver commits
                           └▶ parts of all other tables, which the driver merges first

A task has whole topic partitions, or none of one: what was sent twice shows within a partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas.pipeline import counts, lines, sessions
from barnabas.pipeline.arrow import from_bytes, to_bytes, to_frame, to_table
from barnabas.pipeline.lines import Positions
from barnabas.pipeline.referrers import hosts_of
from barnabas.pipeline.schemas import DEAD_LETTERS, EVENTS, FILES, GROWING, MERGED
from pyspark_barnabas.delta.files import DataFile, FileWriter
from pyspark_barnabas.delta.options import delta_options
from pyspark_barnabas.delta.storage import filesystem

RESULT: Final = "kind string, payload binary"
_RESULT: Final = pa.schema([("kind", pa.string()), ("payload", pa.binary())])
_WRITTEN: Final = "written:"
_LETTERS: Final = "letters"
_DAY_US: Final = 86_400_000_000


class Outcome(NamedTuple):
    """What the tasks of a batch came to."""

    files: dict[str, list[DataFile]]  # of the tables `GROWING`
    parts: dict[str, pl.DataFrame]  # of the tables `MERGED`, merged
    letters: pa.Table  # the rows of the dead letters, for their topic

    @property
    def newest_s(self) -> int | None:
        """Seconds since the epoch of the newest hit; None without one."""
        newest = self.parts["sessions"]["end"].dt.epoch("s").max()
        return newest if isinstance(newest, int) else None


class OnePass(NamedTuple):
    """Its `run` is for `DataFrame.mapInArrow`; travels pickled to the tasks.

    `paths`: of the tables `GROWING`. `seen`: before the batch.
    """

    paths: dict[str, str]
    seen: Positions

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        packed = [stream for batch in batches for stream in batch.column("batch")]
        if packed:
            records = pa.concat_tables(from_bytes(stream.as_buffer()) for stream in packed)
            rows = [*self.results(records)]
            yield pa.RecordBatch.from_pydict(
                {"kind": [kind for kind, _ in rows], "payload": [payload for _, payload in rows]},
                schema=_RESULT,
            )

    def results(self, records: pa.Table) -> Iterator[tuple[str, bytes]]:
        """Of a task with these records: what `outcome` takes."""
        classified = lines.classified(records, self.seen)
        hits = lines.events(classified)
        letters = lines.dead_letters(classified, records)
        stamped = hits.with_columns(
            pl.from_epoch("time_us", time_unit="us").dt.replace_time_zone("UTC").alias("time")
        )
        written = {"events": to_table(stamped, EVENTS), "dead_letters": letters}
        for name, rows in written.items():
            files = write(self.paths[name], rows, GROWING[name])
            yield _WRITTEN + name, json.dumps([file._asdict() for file in files]).encode()
        yield _LETTERS, to_bytes(letters)
        for name, part in _parts(hits).items():
            yield name, to_bytes(to_table(part, MERGED[name]))
        yield "files", to_bytes(to_table(lines.file_counts(classified), FILES))


def outcome(results: Iterable[tuple[str, bytes]]) -> Outcome:
    """The results of all tasks as one."""
    files: dict[str, list[DataFile]] = {name: [] for name in GROWING}
    letters = [DEAD_LETTERS.empty_table()]
    parts: dict[str, list[pa.Table]] = {name: [MERGED[name].empty_table()] for name in MERGED}
    for kind, payload in results:
        if kind.startswith(_WRITTEN):
            name = kind.removeprefix(_WRITTEN)
            files[name] += [DataFile(**each) for each in json.loads(payload)]
        elif kind == _LETTERS:
            letters.append(from_bytes(payload))
        else:
            parts[kind].append(from_bytes(payload))
    merged_parts = {name: merged(name, pa.concat_tables(some)) for name, some in parts.items()}
    ordered = pa.concat_tables(letters).sort_by(
        [("partition", "ascending"), ("offset", "ascending")]
    )
    return Outcome(files, merged_parts, ordered)


def merged(name: str, parts: pa.Table) -> pl.DataFrame:
    """The rows of a table `MERGED` that its parts come to."""
    frame = to_frame(parts)
    if name == "sessions":
        return sessions.joined(frame)
    if name == "files":
        return counts.summed_files(frame)
    return counts.summed(frame, MERGED[name].names)


def write(path: str, rows: pa.Table, schema: pa.Schema) -> list[DataFile]:
    """Files in a table's directory, for a commit to come; none without rows."""
    writer = FileWriter(filesystem(delta_options({"path": path})), schema, ())
    try:
        for batch in rows.to_batches():
            writer.write(batch)
        return writer.finish()
    except BaseException:
        writer.discard()
        raise


def _parts(hits: pl.DataFrame) -> dict[str, pl.DataFrame]:
    day = (pl.col("time_us") // _DAY_US).cast(pl.Int32).cast(pl.Date).alias("day")
    hits = hits.with_columns(day, hosts_of(hits["referrer"]).alias("host"))
    return {"sessions": sessions.joined(sessions.single_hits(hits)), **counts.counted(hits)}


def unpacked(rows: Iterable[Any]) -> Iterator[tuple[str, bytes]]:
    """Collected rows as `outcome` takes them."""
    return ((str(row["kind"]), bytes(row["payload"])) for row in rows)
