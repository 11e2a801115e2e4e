"""Makes a single pass over files in this process, without a topic or Spark.

    files ─▶ lines ─▶ records as the collector would send them ─▶ work ─▶ tables in memory

The lines are turned into records of a single partition, with the headers that the collector would
add, and are processed batch by batch by the same `Work` as in a Spark job. The tables therefore
match those of the Spark job row by row, except for topic, partition and offset, which require a
topic (spec LG-5).

Only the merged tables are kept in memory, together with those few rows of the other tables that the
page shows.
"""

from __future__ import annotations

import io
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

import numpy as np
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]

from barnabas.errors import ConfigError
from barnabas_collector.file_progress import FileProgress, new_file
from barnabas_collector.headers import CUT, FIELDS, FILE, FILE_ID, HOST, LINE, POSITION
from barnabas_collector.line_cutter import Line, LineBlock, size_and_cuts
from barnabas_collector.line_reader import LineReader
from barnabas_collector.log_file import LogFile
from barnabas_collector.packed_text import DamagedText
from barnabas_collector.record_joiner import IsStart
from barnabas_collector.record_reader import RecordReader
from barnabas_collector.w3c_columns import columns_in
from barnabas_pipeline.arrow import to_frame, to_table
from barnabas_pipeline.layout import Layout
from barnabas_pipeline.places import Positions
from barnabas_pipeline.schemas import HEADERS, TIME
from barnabas_pipeline.view import View
from barnabas_pipeline.work import Definition, Outcome

BATCH_RECORDS: Final = 250_000
"""The maximum number of records in a batch, as in the Spark job."""
STANDARD_INPUT: Final = "-"

_KEY_BYTES: Final = 256
_SAMPLES: Final = 5  # rows for each value
_PARTS: Final = 8  # parts of a table, before they are merged
_PEEKED_BYTES: Final = 262_144
_LINES: Final = pl.Schema(
    {
        "position": pl.Int64,
        "number": pl.Int64,
        "key": pl.Binary,
        "value": pl.Binary,
        "size": pl.Int64,
        "fields": pl.Binary,
    }
)
_RECORDS: Final = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", TIME),
        ("timestampType", pa.int32()),
    ]
)
_PAIR: Final = pa.schema([*HEADERS.value_type])
_SAMPLED: Final = {"dead_letters": ("reason", "value"), "entries": ("format", "message")}
"""Growing tables of which a few rows are kept for each value of the first column, provided that the
second column is not empty.
"""


class Origin(NamedTuple):
    """The properties shared by all records of a pass."""

    topic: str
    host: str | None = None
    """The name of the machine to put in the headers, or None if the pipeline's collector does not
    send it.
    """
    is_start: IsStart | None = None
    """The rule for recognising the first line of a record, or None if each line is a record."""


class MemoryView(View):
    """Holds the tables of a pass over files in memory."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._newest_s: int | None = None
        self._reasons: Counter[str] = Counter()
        self._parts: dict[str, list[pa.Table]] = {name: [] for name in layout.merged}
        self._samples: dict[str, pl.DataFrame] = {}

    def add(self, found: Outcome) -> None:
        """Add a finished batch."""
        for name, frame in found.parts.items():
            parts = self._parts[name]
            parts.append(to_table(frame, self._layout.merged[name]))
            # Merge, so that memory use depends on the size of the tables, not on the number of
            # batches.
            if len(parts) >= _PARTS:
                self._parts[name] = [to_table(self.frame(name), self._layout.merged[name])]
        self._reasons.update(found.letters["reason"].to_pylist())
        for name in _SAMPLED:
            if name in found.rows:
                self._keep_samples(name, found.rows[name])
        times = (self._layout.newest_s(found.parts), self._newest_s)
        self._newest_s = max((each for each in times if each is not None), default=None)

    def _keep_samples(self, name: str, rows: pa.Table) -> None:
        key, text = _SAMPLED[name]
        frame = to_frame(rows)
        some = frame.filter(pl.col(text) != pl.lit("").cast(frame[text].dtype))
        before = self._samples.get(name, some.clear())
        # Keep the first rows for each value, in the order of the files.
        first = pl.concat([before, some]).group_by(key).head(_SAMPLES)
        # Grouping moves the key to the front; the next batch has the columns in their original
        # order.
        self._samples[name] = first.select(some.columns)

    @property
    def newest_s(self) -> int | None:
        return self._newest_s

    @property
    def positions(self) -> Positions:
        """The highest position seen in each file, by file id and partition."""
        rows = self.frame("files").select("file_id", "partition", "position").iter_rows()
        return {(file_id, partition): position for file_id, partition, position in rows}

    def frame(self, name: str) -> pl.DataFrame:
        parts = self._parts[name]
        schema = self._layout.merged[name]
        return self._layout.merge(name, pa.concat_tables(parts) if parts else schema.empty_table())

    def dataset(self, name: str) -> None:
        """Return None, because the rows of growing tables are not kept in memory."""

    def reasons(self) -> Counter[str]:
        return self._reasons

    def some(
        self, name: str, number: int, columns: list[str], of: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        rows = self._samples.get(name)
        if rows is None:
            return []
        wanted = [pl.col(column) == value for column, value in of.items()]
        return rows.filter(wanted).select(columns).head(number).to_dicts()


def take_batch(definition: Definition, view: MemoryView, records: pa.Table) -> None:
    """Process a batch, as a Spark job with one task would, and add it to the view."""
    layout = definition.layout
    work = definition.work(view)
    part = work.part(records, view.positions)
    parts = {
        name: layout.merge(name, to_table(part.parts[name], schema))
        for name, schema in layout.merged.items()
    }
    found = work.finish(Outcome({}, parts, part.rows["dead_letters"], part.left))
    rows = {
        name: pa.concat_tables(
            [part.rows[name], *([found.rows[name]] if name in found.rows else [])]
        )
        for name in layout.growing
    }
    view.add(found._replace(rows=rows))


def batches(
    paths: Iterable[str],
    origin: Origin,
    on_bytes: Callable[[int], None] | None = None,
    *,
    most: int = BATCH_RECORDS,
) -> Iterator[pa.Table]:
    """Yield the records of the files in batches. Offsets continue from one file to the next.

    `on_bytes`: a function that is called with the number of bytes of text read since the last call.
    `most`: the maximum number of records in a batch. Raises `ConfigError` with the reason if a file
    cannot be read.
    """
    offset = 0
    # Like the Spark job, fill a batch with records from any number of files.
    waiting: list[pa.Table] = []
    room = most
    for path in paths:
        with open_text(path, origin) as (progress, portions):
            for lines, columns in columns_in(portions):
                if on_bytes is not None:
                    on_bytes(size_and_cuts(lines)[0] + len(lines))
                frame = _frame(lines, origin, columns)
                while frame.height:
                    waiting.append(_records(frame.head(room), progress, origin, offset))
                    taken = waiting[-1].num_rows
                    frame, offset, room = frame.slice(taken), offset + taken, room - taken
                    if not room:
                        yield pa.concat_tables(waiting)
                        waiting, room = [], most
    if waiting:
        yield pa.concat_tables(waiting)


def read_ahead(batches: Iterator[pa.Table]) -> Generator[pa.Table, None, None]:
    """Yield the batches, reading the next batch while the caller processes the current one.

    A read error is raised at the point at which the affected batch would be yielded.
    """
    with ThreadPoolExecutor(1, "barnabas-read-ahead") as reader:
        upcoming = reader.submit(next, batches, None)
        while (batch := upcoming.result()) is not None:
            upcoming = reader.submit(next, batches, None)
            yield batch


@contextmanager
def open_text(path: str, origin: Origin) -> Iterator[tuple[FileProgress, Iterator[Sequence[Line]]]]:
    """Open a file or standard input, and yield its progress and its lines, one portion at a time.

    Raises `ConfigError` with the reason if the file cannot be read.
    """
    if path == STANDARD_INPUT:
        yield new_file(path, b"", 0), _portions(cast(BinaryIO, _Pipe(_standard_input())), origin)
        return
    file = LogFile(Path(path))
    try:
        file.check()
        name = str(Path(path).resolve())  # the name that the collector uses
        yield new_file(name, file.beginning(), 0), _checked(path, _portions(file.text, origin))
    finally:
        file.close()


def _portions(text: BinaryIO, origin: Origin) -> Iterator[Sequence[Line]]:
    """Yield the lines, or records of several lines, one portion at a time."""
    if origin.is_start is None:
        reader: LineReader | RecordReader = LineReader(text)
    else:
        reader = RecordReader(text, 0, 1, origin.is_start)
    yield from reader.portions()
    # A report does not wait for the rest of a file, so an unfinished last line counts.
    if rest := reader.last():
        yield rest


def _checked(path: str, portions: Iterator[Sequence[Line]]) -> Iterator[Sequence[Line]]:
    try:
        yield from portions
    except (EOFError, DamagedText) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None


class _Pipe(io.RawIOBase):
    """Reads a stream that cannot seek, from the start."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        return self._stream.read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        if offset or whence:
            raise io.UnsupportedOperation("standard input is read once, from its beginning")
        return 0


def _frame(lines: Sequence[Line], origin: Origin, fields: Sequence[bytes | None]) -> pl.DataFrame:
    """Return the lines as rows of `_LINES`. `fields`: the W3C columns of each line."""
    if isinstance(lines, LineBlock):
        positions, texts, sizes = lines.positions[:-1], lines.texts, lines.sizes
        numbers: Sequence[int] = range(lines.number, lines.number + len(texts))
    else:
        rows = [(each.position, each.number, each.text, each.size_bytes) for each in lines]
        positions, numbers, texts, sizes = map(list, zip(*rows, strict=True))
    # The collector for access logs sends the address as the key.
    keys = (
        [text.split(b" ", 1)[0][:_KEY_BYTES] or None for text in texts] if not origin.host else None
    )
    columns = (positions, numbers, keys, texts, sizes, fields)
    return pl.DataFrame(dict(zip(_LINES, columns, strict=True)), schema=_LINES)


def _records(lines: pl.DataFrame, progress: FileProgress, origin: Origin, offset: int) -> pa.Table:
    """Return the lines as records, with the headers that the collector sends."""
    of_file = {
        FILE: progress.path.encode("utf-8", "replace"),
        FILE_ID: progress.file_id.encode(),
        **({HOST: origin.host.encode()} if origin.host is not None else {}),
    }
    key = pl.col("key") if origin.host is None else pl.lit(progress.file_id.encode())
    now_us = time.time_ns() // 1_000_000 * 1_000
    records = lines.select(
        key=key,
        value="value",
        topic=pl.lit(origin.topic),
        partition=pl.lit(0, pl.Int32),
        offset=pl.int_range(offset, offset + lines.height, dtype=pl.Int64),
        timestamp=pl.lit(now_us, pl.Int64).cast(pl.Datetime("us", "UTC")),
        timestampType=pl.lit(0, pl.Int32),
    )
    return to_table(records, _RECORDS).append_column("headers", _headers(lines, of_file))


def _headers(lines: pl.DataFrame, of_file: Mapping[str, bytes]) -> pa.Array:
    """Return the headers of all records. In each record, the headers for the file precede the
    headers for the line.
    """
    count, fixed = lines.height, len(of_file)
    decimal = lines.select(pl.col("position", "number", "size").cast(pl.String).cast(pl.Binary))
    # One column contains all values, which records reference by index.
    pool = pl.concat([pl.Series([*of_file.values()]), *decimal.get_columns(), lines["fields"]])
    names = pl.Series([*of_file, POSITION, LINE, CUT, FIELDS])
    own = np.arange(count)[:, None] + fixed + count * np.arange(4)
    values = np.hstack([np.tile(np.arange(fixed), (count, 1)), own])
    # Only truncated lines carry their size in a header, and only W3C lines their columns.
    is_cut = lines.select(pl.col("size") > pl.col("value").bin.size()).to_series().to_numpy()
    is_there = np.ones(values.shape, dtype=bool)
    is_there[:, -2] = is_cut
    is_there[:, -1] = lines["fields"].is_not_null().to_numpy()
    which = np.broadcast_to(np.arange(fixed + 4), values.shape)[is_there]
    pairs = pl.DataFrame({"key": names.gather(which), "value": pool.gather(values[is_there])})
    ends = np.concatenate([[0], np.cumsum(is_there.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(
        pl.Series(ends).to_arrow(), to_table(pairs, _PAIR).to_struct_array().combine_chunks()
    )


def head(path: str, number: int) -> list[bytes]:
    """Return the first lines of a file, from which the kind of log can be inferred."""
    if path == STANDARD_INPUT:
        # The pass reads the peeked bytes again.
        beginning = _standard_input().peek(_PEEKED_BYTES)
        return beginning.splitlines()[:number]
    with open_text(path, Origin("")) as (_, portions):
        return [line.text for line in next(portions, [])[:number]]


@cache
def _standard_input() -> io.BufferedReader:
    return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False), _PEEKED_BYTES)
