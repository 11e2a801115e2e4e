"""Writes Parquet files in a task of the Delta sink, one file per partition of the table.

Each file has a random name, in a directory named after its partition. According to the protocol,
the partition in the table's log is authoritative, but Polars takes the partition from the
directory. Files that are not committed are invisible to readers, and a vacuum removes them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.fs as pa_fs  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from barnabas.errors import BarnabasError, ConfigError, in_one_line
from pyspark_barnabas.delta.schema import is_strict, nullable
from pyspark_barnabas.delta.stats import statistics

MOST_PARTITIONS: Final = 1_000  # per task, because each needs an open file of a useful size

_GROUP_BYTES: Final = 32 << 20  # of the rows of one file that wait for a full row group
_MOST_BYTES: Final = 128 << 20  # of all such rows

_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_LONGEST_NAME: Final = 255  # bytes, in most file systems

Key = tuple[str | None, ...]


class DataFile(NamedTuple):
    """A Parquet file that has been written but not committed."""

    path: str  # relative to the table's root
    size_bytes: int
    partition_values: Mapping[str, str | None]
    stats: str
    modified_ms: int
    rows: int


class FileWriter:
    """Writes one task's files. Raises `ConfigError` if a row cannot be written to the table.

    `required`: columns that may not be null. `is_strict`: whether the table also forbids nulls in
    some nested fields; if not, everything in a file is nullable, as readers expect.
    """

    def __init__(
        self,
        filesystem: pa_fs.FileSystem,
        schema: pa.Schema,
        partition_by: Sequence[str],
        required: Collection[str] = (),
        is_strict: bool = False,
    ) -> None:
        self._filesystem = filesystem
        self._partition_by = partition_by
        self._required = required
        if not is_strict:
            schema = nullable(schema)
        inside = [field for field in schema if field.name not in partition_by]
        self._schema = pa.schema(inside)
        self._open: dict[Key, PartitionFile] = {}
        self._waiting_bytes = 0

    def write(self, batch: pa.RecordBatch) -> None:
        for name in self._required:
            if batch.column(name).null_count:
                raise ConfigError(f"column {name} is null in a row, which the table does not allow")
        rows = batch.select(self._schema.names)
        for key, mask in self._split(batch):
            file = self._open.get(key)
            if file is None:
                if len(self._open) >= MOST_PARTITIONS:
                    raise ConfigError(
                        f"a task has rows for more than {MOST_PARTITIONS} partitions of the table "
                        f"({', '.join(self._partition_by)}): repartition by these columns before"
                        " writing"
                    )
                values = dict(zip(self._partition_by, key, strict=True))
                file = self._open[key] = PartitionFile(self._filesystem, self._schema, values)
            self._waiting_bytes += file.add(rows if mask is None else rows.filter(mask))
            if file.waiting_bytes > _GROUP_BYTES:
                self._waiting_bytes -= file.flush()
        if self._waiting_bytes > _MOST_BYTES:
            self._waiting_bytes -= sum(each.flush() for each in self._open.values())

    def finish(self) -> list[DataFile]:
        return [file.finish() for file in self._open.values()]

    def discard(self) -> None:
        """Try to remove the files that have been written, because they will not be committed."""
        for file in self._open.values():
            file.discard()

    def _split(self, batch: pa.RecordBatch) -> Iterator[tuple[Key, pa.Array | None]]:
        """Yield each partition with a mask that selects its rows; if the mask is None, all rows are
        in this partition.
        """
        if not batch.num_rows:
            return
        if not self._partition_by:
            yield (), None
            return
        columns = [partition_texts(batch.column(name), name) for name in self._partition_by]
        keys = pa.StructArray.from_arrays(columns, names=[str(at) for at in range(len(columns))])
        distinct = dict.fromkeys(tuple(each.values()) for each in keys.to_pylist())
        # All rows are in the same partition, so no rows have to be copied.
        if len(distinct) == 1:
            yield next(iter(distinct)), None
            return
        for key in distinct:
            mask = None
            for column, value in zip(columns, key, strict=True):
                own = pc.is_null(column) if value is None else pc.equal(column, value)
                own = pc.fill_null(own, False)
                mask = own if mask is None else pc.and_(mask, own)
            yield key, mask


class PartitionFile:
    """Represents a file of one partition while it is being written."""

    def __init__(
        self,
        filesystem: pa_fs.FileSystem,
        schema: pa.Schema,
        partition_values: Mapping[str, str | None],
    ) -> None:
        self._filesystem = filesystem
        self._partition_values = partition_values
        directories = [_directory(name, value) for name, value in partition_values.items()]
        self._path = "/".join([*directories, f"part-{uuid4()}.parquet"])
        self._schema = schema
        self._waiting: list[pa.RecordBatch] = []
        self.waiting_bytes = 0
        self._footers: list[pq.FileMetaData] = []
        with self._named():
            if directories:
                filesystem.create_dir("/".join(directories))
            self._writer = pq.ParquetWriter(
                self._path,
                self._schema,
                filesystem=filesystem,
                compression="zstd",
                metadata_collector=self._footers,
                coerce_timestamps="us",
            )

    def add(self, rows: pa.RecordBatch) -> int:
        """Add rows to the waiting rows, and return the number of bytes added."""
        self._waiting.append(rows)
        self.waiting_bytes += rows.nbytes
        return int(rows.nbytes)

    def flush(self) -> int:
        """Write the waiting rows as one row group, and return their size in bytes."""
        written, self.waiting_bytes = self.waiting_bytes, 0
        if self._waiting:
            rows = _fitting(pa.Table.from_batches(self._waiting), self._schema)
            with self._named():
                try:
                    self._writer.write_table(rows)
                except pa.ArrowInvalid as error:
                    raise ConfigError(
                        f"rows that cannot be written: {in_one_line(error)}"
                    ) from error
            self._waiting = []
        return written

    def finish(self) -> DataFile:
        self.flush()
        with self._named():
            self._writer.close()
            size_bytes = self._filesystem.get_file_info(self._path).size
        (footer,) = self._footers
        modified_ms = int(time.time() * 1000)
        stats = statistics(footer)
        values = self._partition_values
        return DataFile(self._path, size_bytes, values, stats, modified_ms, footer.num_rows)

    def discard(self) -> None:
        self._waiting = []
        # Arrow raises RuntimeError after a failed write, because it has no metadata to collect.
        with contextlib.suppress(OSError, pa.ArrowException, RuntimeError):
            self._writer.close()
        with contextlib.suppress(OSError, pa.ArrowException):
            self._filesystem.delete_file(self._path)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Add the file's name to any file system error."""
        try:
            yield
        except OSError as error:
            root = getattr(self._filesystem, "base_path", "")
            raise BarnabasError(f"cannot write {root}{self._path}: {in_one_line(error)}") from error


def _fitting(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert the rows to a file's schema."""
    if not any(is_strict(field.type) for field in schema):
        return rows if rows.schema.equals(schema) else rows.cast(schema)
    return pa.Table.from_arrays(
        [_fitting_column(rows.column(field.name), field.type) for field in schema], schema=schema
    )


def _fitting_column(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if not is_strict(kind):
        return column.cast(kind)
    # Within a null, Spark writes nulls even to fields that may not be null; Arrow can neither cast
    # nor write these. A column built from Python values has non-null values in these fields.
    return pa.chunked_array([pa.array(each.to_pylist(), kind) for each in column.chunks], kind)


def _directory(name: str, value: str | None) -> str:
    text = _NULL if value is None else quote(value, safe="")
    directory = f"{quote(name, safe='')}={text}"
    if len(directory) > _LONGEST_NAME:
        raise ConfigError(
            f"a row's {name} has {len(value or '')} characters: too long for the name of a "
            "partition's directory"
        )
    return directory


def partition_texts(column: pa.Array, name: str) -> pa.Array:
    """Return the values of a partition column in the form used in the log (Delta's protocol,
    "Partition Value Serialization"). Raises `ConfigError` for values that the log cannot represent.
    """
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # According to the protocol, an empty string is null.
        return pc.if_else(pc.equal(column, ""), None, column).cast(pa.string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_date(kind):
        return _within_years(column, name).cast(pa.string())
    if pa.types.is_timestamp(kind):
        return _instants(column, name)
    raise ConfigError(f"column {name} is {kind}, by which a table cannot be partitioned")


def _instants(column: pa.Array, name: str) -> pa.Array:
    """Return instants in UTC, with a mark for UTC, because Spark interprets an unmarked instant in
    the session's time zone. Times without a zone are not marked."""
    # A cast to a type without a zone yields the time in UTC, regardless of the column's zone.
    texts = _within_years(column.cast(pa.timestamp("us")), name).cast(pa.string())
    if column.type.tz is None:
        return texts
    return pc.binary_join_element_wise(pc.replace_substring(texts, " ", "T"), "Z", "")


def without_mark(instant: str) -> str:
    """Return an instant's text as `deltalake` and older versions of this sink write it: in UTC, but
    not marked as UTC."""
    return instant.replace("T", " ").removesuffix("Z")


def _within_years(column: pa.Array, name: str) -> pa.Array:
    years = pc.min_max(pc.year(column)).as_py()
    if years["min"] is not None and not 1 <= years["min"] <= years["max"] <= 9999:
        raise ConfigError(
            f"column {name} has a time before the year 1 or after 9999, by which a table cannot "
            "be partitioned"
        )
    return column
