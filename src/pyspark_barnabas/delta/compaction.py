"""Merges a table's small files into large ones, in one commit; the rows do not change.

This module does not use `optimize` from `deltalake`, because if two calls run concurrently, version
1.6.6 commits both, and every row is then in the table twice. When a commit of this module loses a
race against another commit, it is repeated only if the table still contains all files that it
removes. Therefore, only one of two concurrent compactions takes effect, and a concurrent overwrite
is not undone in part.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, unquote

import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
import pyarrow.dataset as pa_dataset  # type: ignore[import-untyped]
import pyarrow.fs as pa_fs  # type: ignore[import-untyped]

from barnabas.errors import BarnabasError
from pyspark_barnabas.delta.demands import refuse_demands
from pyspark_barnabas.delta.files import DataFile, PartitionFile, partition_texts, without_mark
from pyspark_barnabas.delta.log import hook
from pyspark_barnabas.delta.options import DeltaOptions
from pyspark_barnabas.delta.storage import existing_table, filesystem, open_table

if TYPE_CHECKING:
    from deltalake import DeltaTable

TARGET_BYTES: Final = 128 << 20

_SMALL_BYTES: Final = TARGET_BYTES // 2
_GROUP_BYTES: Final = 32 << 20
_ATTEMPTS: Final = 20  # of a commit that loses races
_BATCH_ROWS: Final = 16_384
_OPERATION: Final = "barnabas.operation"  # in the commit's own metadata

Key = tuple[str | None, ...]


class Compacted(NamedTuple):
    """The numbers of files removed and added."""

    removed: int
    added: int


class CompactionLost(BarnabasError):
    """Another writer changed the files first, so this compaction changed nothing."""


class _Small(NamedTuple):
    """A small file of the table.

    `path` is the file's real path; in the log, its `%` characters are encoded again.
    """

    path: str
    size_bytes: int
    key: Key


def compact(
    options: DeltaOptions, merge: Callable[[pa.Table], pa.Table] | None = None
) -> Compacted:
    """Merge small files. `merge`: a function that combines the rows of several files in one
    partition, or None to leave them as they are. Readers of the table must not be able to tell the
    result from the original rows.

    Raises `CompactionLost`, or `ConfigError` if there is no table or the table makes demands that
    this sink cannot meet.
    """
    table = existing_table(options)
    refuse_demands(table)
    bins = list(_bins(_small_files(table)))
    if not bins:
        return Compacted(0, 0)
    where = filesystem(options)
    merged: list[DataFile] = []
    try:
        for files in bins:
            merged.append(_merge(where, table, files, merge))
        _commit(options, [file for files in bins for file in files], merged)
    except BaseException:
        for file in merged:
            where.delete_file(file.path)
        raise
    return Compacted(sum(map(len, bins)), len(merged))


def _small_files(table: DeltaTable) -> list[_Small]:
    partition_by = table.metadata().partition_columns
    actions = pa.table(table.get_add_actions())
    paths = [unquote(path) for path in actions.column("path").to_pylist()]
    texts: list[Sequence[str | None]] = []
    if partition_by:
        values = actions.column("partition").combine_chunks()
        texts = [
            _texts(values.field(name), name, paths) if len(values) else [] for name in partition_by
        ]
    keys = zip(*texts, strict=True) if partition_by else [()] * actions.num_rows
    sizes = actions.column("size_bytes").to_pylist()
    every = (_Small(*each) for each in zip(paths, sizes, keys, strict=True))
    return [file for file in every if file.size_bytes < _SMALL_BYTES]


def _texts(values: pa.Array, name: str, paths: Sequence[str]) -> Sequence[str | None]:
    """Return the partition values of a column, as they are written in the log.

    `deltalake` returns only parsed values, so the directory names have to show which instants are
    marked as UTC. Spark reads unmarked instants differently, and those from earlier versions of
    this sink may be wrong.
    """
    texts: list[str | None] = partition_texts(values, name).to_pylist()
    if not pa.types.is_timestamp(values.type) or values.type.tz is None:
        return texts
    marked = re.compile(rf"(^|/){re.escape(quote(name, safe=''))}=[^/]*Z/")
    return [
        text if text is None or marked.search(path) else without_mark(text)
        for text, path in zip(texts, paths, strict=True)
    ]


def _bins(files: Sequence[_Small]) -> Iterator[list[_Small]]:
    """Yield groups of files to merge. All files in a group are in the same partition, and each file
    is in at most one group.
    """
    by_key: dict[Key, list[_Small]] = {}
    for file in files:
        by_key.setdefault(file.key, []).append(file)
    for own in by_key.values():
        found: list[_Small] = []
        for file in own:
            if sum(each.size_bytes for each in found) + file.size_bytes > TARGET_BYTES:
                if len(found) > 1:
                    yield found
                found = []
            found.append(file)
        # Merging a single file would only copy it.
        if len(found) > 1:
            yield found


def _merge(
    where: pa_fs.FileSystem,
    table: DeltaTable,
    files: Sequence[_Small],
    merge: Callable[[pa.Table], pa.Table] | None,
) -> DataFile:
    partition_by = table.metadata().partition_columns
    whole = pa.schema(table.schema().to_arrow())
    schema = pa.schema([field for field in whole if field.name not in partition_by])
    target = PartitionFile(where, schema, dict(zip(partition_by, files[0].key, strict=True)))
    try:
        # Missing columns, including those within structs, become null.
        found = pa_dataset.dataset(
            [file.path for file in files], schema=schema, format="parquet", filesystem=where
        )
        if merge is None:
            batches = found.to_batches(batch_size=_BATCH_ROWS, batch_readahead=2)
        else:
            batches = merge(found.to_table()).to_batches(_BATCH_ROWS)
        for batch in batches:
            target.add(batch)
            if target.waiting_bytes > _GROUP_BYTES:
                target.flush()
        return target.finish()
    except BaseException:
        target.discard()
        raise


def _commit(options: DeltaOptions, old: Sequence[_Small], new: Sequence[DataFile]) -> None:
    from deltalake import CommitProperties
    from deltalake.exceptions import CommitFailedError
    from deltalake.transaction import AddAction, RemoveAction

    now_ms = int(time.time() * 1000)
    # `False` means that the rows do not change (`dataChange`), so readers that stream the table see
    # no row twice.
    actions: list[Any] = [
        AddAction(
            file.path, file.size_bytes, file.partition_values, file.modified_ms, False, file.stats
        )
        for file in new
    ]
    for _ in range(_ATTEMPTS):
        table = open_table(options)
        # If another writer has merged or replaced any of the files, their rows may now be in other
        # files.
        if table is None or not set(old) <= set(_small_files(table)):
            break
        names = table.metadata().partition_columns
        removed = [
            RemoveAction(
                each.path, False, now_ms, each.size_bytes, dict(zip(names, each.key, strict=True))
            )
            for each in old
        ]
        try:
            table.create_write_transaction(
                [*actions, *removed],
                "append",
                table.schema(),
                partition_by=names,
                # Left to itself, `deltalake` would retry with weaker checks.
                commit_properties=CommitProperties({_OPERATION: "compact"}, max_commit_retries=0),
                post_commithook_properties=hook(options),
            )
        except CommitFailedError:
            continue
        return
    raise CompactionLost(f"{options.path}: other writers changed the same files meanwhile")
