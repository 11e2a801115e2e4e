"""Makes the single pass over a batch: each Spark task processes its share of the records.

    records ─▶ work ─┬▶ files of the growing tables, which the driver commits
                     └▶ parts of all other tables, which the driver merges first

A task processes whole topic partitions, because duplicates are recognised within a partition.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline.arrow import from_bytes, to_bytes, to_table
from barnabas_pipeline.layout import Layout
from barnabas_pipeline.places import Positions
from barnabas_pipeline.schemas import DEAD_LETTERS
from barnabas_pipeline.work import Outcome, Work
from pyspark_barnabas.delta.files import DataFile, FileWriter
from pyspark_barnabas.delta.options import delta_options
from pyspark_barnabas.delta.storage import filesystem
from pyspark_barnabas.memory import settle_objects

RESULT: Final = "kind string, payload binary"
_RESULT: Final = pa.schema([("kind", pa.string()), ("payload", pa.binary())])
_WRITTEN: Final = "written:"
_LEFT: Final = "left"
_LETTERS: Final = "letters"


class OnePass(NamedTuple):
    """The pass, which is sent pickled to the tasks; `run` is for `DataFrame.mapInArrow`."""

    work: Work
    growing: Mapping[str, pa.Schema]
    merged: Mapping[str, pa.Schema]
    paths: dict[str, str]
    seen: Positions

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # The source packs rows (option `recordBatches`): each row is an Arrow stream of records.
        packed = [stream for batch in batches for stream in batch.column("batch")]
        if packed:
            records = pa.concat_tables(from_bytes(stream.as_buffer()) for stream in packed)
            rows = [*self.results(records)]
            yield pa.RecordBatch.from_pydict(
                {"kind": [kind for kind, _ in rows], "payload": [payload for _, payload in rows]},
                schema=_RESULT,
            )
        settle_objects("pass")

    def results(self, records: pa.Table) -> Iterator[tuple[str, bytes]]:
        """Process a task's records, and yield the results for `outcome`."""
        part = self.work.part(records, self.seen)
        for name, rows in part.rows.items():
            files = write(self.paths[name], rows, self.growing[name])
            yield _WRITTEN + name, json.dumps([file._asdict() for file in files]).encode()
        # The driver also needs the rows of dead letters, to send them to their topic.
        yield _LETTERS, to_bytes(part.rows["dead_letters"])
        for name, frame in part.parts.items():
            yield name, to_bytes(to_table(frame, self.merged[name]))
        if part.left is not None:
            yield _LEFT, to_bytes(part.left)


def outcome(layout: Layout, results: Iterable[tuple[str, bytes]]) -> Outcome:
    """Return the combined results of all tasks."""
    files: dict[str, list[DataFile]] = {name: [] for name in layout.growing}
    letters = [DEAD_LETTERS.empty_table()]
    left: list[pa.Table] = []
    # Each merged table gets a part, even if empty, because a batch commits to every table.
    parts = {name: [schema.empty_table()] for name, schema in layout.merged.items()}
    for kind, payload in results:
        if kind.startswith(_WRITTEN):
            name = kind.removeprefix(_WRITTEN)
            files[name] += [DataFile(**each) for each in json.loads(payload)]
        elif kind == _LETTERS:
            letters.append(from_bytes(payload))
        elif kind == _LEFT:
            left.append(from_bytes(payload))
        else:
            parts[kind].append(from_bytes(payload))
    merged_parts = {
        name: layout.merge(name, pa.concat_tables(some)) for name, some in parts.items()
    }
    ordered = pa.concat_tables(letters).sort_by(
        [("partition", "ascending"), ("offset", "ascending")]
    )
    return Outcome(files, merged_parts, ordered, pa.concat_tables(left) if left else None)


def with_rows_written(
    found: Outcome, growing: Mapping[str, pa.Schema], paths: Mapping[str, str]
) -> Outcome:
    """Write the rows finished by the driver, and return the outcome with their files added."""
    files = dict(found.files)
    for name, rows in found.rows.items():
        files[name] = [*files[name], *write(paths[name], rows, growing[name])]
    return found._replace(files=files, rows={})


def write(path: str, rows: pa.Table, schema: pa.Schema) -> list[DataFile]:
    """Write any rows to files in a table's directory, for a later commit."""
    writer = FileWriter(filesystem(delta_options({"path": path})), schema, ())
    try:
        for batch in rows.to_batches():
            writer.write(batch)
        return writer.finish()
    # Uncommitted files are invisible, but a vacuum would keep them for a week.
    except BaseException:
        writer.discard()
        raise


def unpack(rows: Iterable[Any]) -> Iterator[tuple[str, bytes]]:
    """Convert collected rows for `outcome`."""
    return ((str(row["kind"]), bytes(row["payload"])) for row in rows)
