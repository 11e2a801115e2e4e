"""Reads the input of `verify`, which consists of topic records up to predetermined offsets, and of
rows of Delta tables.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas.cli.verify.account import Offsets
from barnabas.client.consumer.consumer import Consumer
from barnabas.errors import BarnabasError, ConfigError, UnknownTopicOrPartition, in_one_line
from barnabas.extras import install_line
from barnabas.records.columns import Columns, iterate_columns
from barnabas.types import TopicPartition

_POLL_MS = 1_000
_SILENCE_POLLS = 60
_NO_NUMBER = -1
_BATCH_ROWS = 65_536


class NothingComes(BarnabasError):
    """Raised if no record has arrived for a minute."""


class Names(NamedTuple):
    """Names the headers or columns that identify a row's record. If there is only one source, the
    topic may be missing.
    """

    topic: str | None
    partition: str
    offset: str


class Origins(NamedTuple):
    """Holds the records that rows name, by partition."""

    places: Mapping[TopicPartition, Offsets]
    unmarked: int
    """The number of rows that name no record."""


async def bounds_of(
    consumer: Consumer, topic: str, until_ms: int | None = None
) -> dict[TopicPartition, range]:
    """Return the bounds of every partition. They contain all current offsets, or those older than
    `until_ms`.

    Raises UnknownTopicOrPartition.
    """
    # `partitions_for` would wait for the topic to be created.
    if topic not in await consumer.list_topics([topic]):
        raise UnknownTopicOrPartition(f"there is no topic {topic!r}")
    partitions = [TopicPartition(topic, each) for each in await consumer.partitions_for(topic)]
    starts = await consumer.beginning_offsets(partitions)
    ends = await consumer.end_offsets(partitions)
    if until_ms is not None:
        found = await consumer.offsets_for_times(dict.fromkeys(partitions, until_ms))
        ends.update({each: min(at.offset, ends[each]) for each, at in found.items() if at})
    return {each: range(starts[each], max(starts[each], ends[each])) for each in partitions}


async def records_of(
    consumer: Consumer, bounds: Mapping[TopicPartition, range], *, with_headers: bool = False
) -> AsyncIterator[tuple[TopicPartition, Columns]]:
    """Yield each record within the bounds once, as a consumer receives it."""
    left = {partition: within for partition, within in bounds.items() if within}
    consumer.assign(left)
    for partition, within in left.items():
        consumer.seek(partition, within.start)
    silent = 0
    while left:
        answers = await consumer.fetch_batches(_POLL_MS)
        silent = 0 if answers else silent + 1
        if silent > _SILENCE_POLLS:
            names = ", ".join(f"{each.topic}-{each.partition}" for each in left)
            raise NothingComes(f"no records of {names} arrived for a minute")
        for partition, answer in answers.items():
            if partition not in left:
                continue
            within = left[partition]
            for columns in iterate_columns(
                answer.records,
                range(max(answer.offset, within.start), within.stop),
                aborted=answer.aborted,
                with_headers=with_headers,
            ):
                yield partition, columns
            # Use the position, because the last offsets may belong to markers or may have been
            # compacted away.
            if answer.next_offset >= within.stop:
                del left[partition]
                consumer.pause(partition)


def origins_by_headers(columns: Columns, names: Names, only: str | None) -> Origins:
    """Return the origins named by the last header of each name, as text."""
    count = len(columns.offsets)
    headers = columns.headers
    assert headers is not None
    parents = pc.list_parent_indices(headers).to_numpy(zero_copy_only=False)
    entries = pc.list_flatten(headers)
    keys, values = pc.struct_field(entries, "key"), pc.struct_field(entries, "value")

    def column(name: str) -> pa.Array:
        mine = pc.fill_null(pc.equal(keys, name), False)
        rows = parents[mine.to_numpy(zero_copy_only=False)]
        places = np.full(count, -1, np.int64)
        places[rows] = np.arange(len(rows))  # the last one wins
        taken = pa.array(places, mask=places < 0)
        return values.filter(mine).take(taken)

    topics = pa.repeat(only, count) if names.topic is None else column(names.topic)
    return _origins(topics, _numbers(column(names.partition)), _numbers(column(names.offset)))


def origins_by_columns(rows: pa.RecordBatch, names: Names, only: str | None) -> Origins:
    topics = pa.repeat(only, len(rows)) if names.topic is None else rows.column(names.topic)
    partitions, offsets = rows.column(names.partition), rows.column(names.offset)
    return _origins(topics, partitions.cast(pa.int64()), offsets.cast(pa.int64()))


def _numbers(texts: pa.Array) -> pa.Array:
    """Convert texts to numbers. A text that is not a number becomes null."""
    is_number = pc.match_substring_regex(texts, r"^\d{1,18}$")
    return pc.if_else(is_number, texts, None).cast(pa.string()).cast(pa.int64())


def _origins(topics: pa.Array, partitions: pa.Array, offsets: pa.Array) -> Origins:
    marked = pc.and_(pc.and_(pc.is_valid(topics), pc.is_valid(partitions)), pc.is_valid(offsets))
    unmarked = len(marked) - (pc.sum(marked).as_py() or 0)
    # Filtering copies, and in most outputs, every row names its record.
    if unmarked:
        topics, partitions, offsets = (
            each.filter(marked) for each in (topics, partitions, offsets)
        )
    encoded = topics.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    numbers = partitions.to_numpy(zero_copy_only=False).astype(np.int64)
    every = offsets.to_numpy(zero_copy_only=False).astype(np.int64)
    places: dict[TopicPartition, Offsets] = {}
    for code, name in enumerate(encoded.dictionary.to_pylist()):
        # Headers contain bytes; columns contain text.
        topic = name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
        mine = codes == code
        for number in np.unique(numbers[mine]):
            places[TopicPartition(topic, int(number))] = every[mine & (numbers == number)]
    return Origins(places, unmarked)


def table_rows(
    path: str, storage: Mapping[str, str], columns: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield these columns of a table's current version. Raises ConfigError or BarnabasError."""
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise ConfigError(
            f"Delta tables need deltalake: {install_line('delta', ['deltalake'])}"
        ) from None
    try:
        table = DeltaTable(path, storage_options=dict(storage))
        dataset: Any = table.to_pyarrow_dataset(filesystem=_own_filesystem(path))
    except (DeltaError, OSError) as error:
        raise BarnabasError(f"{path}: {in_one_line(error)}") from error
    missing = [name for name in columns if name not in dataset.schema.names]
    if missing:
        raise ConfigError(
            f"{path} has no column {', '.join(missing)}: name the columns that identify a row's "
            "record with --columns, or compare --by value"
        )
    yield from dataset.to_batches(columns=columns, batch_size=_BATCH_ROWS)


def values_of_rows(rows: pa.RecordBatch, column: str) -> list[bytes | None]:
    """Return the column as bytes, with text as UTF-8. Raises ConfigError."""
    values = rows.column(column)
    try:
        found: list[bytes | None] = values.cast(pa.binary()).to_pylist()
    except pa.ArrowException:
        raise ConfigError(
            f"column {column} is {values.type}, which cannot be compared with bytes"
        ) from None
    return found


def _own_filesystem(path: str) -> Any:
    """Return Arrow's own file system for a directory, or None for an object store. Threads that
    read through deltalake's file system may abort a process that is about to exit (pyarrow 26).
    """
    from pyarrow import fs

    if "://" in path:
        return None
    return fs.SubTreeFileSystem(str(Path(path).absolute()), fs.LocalFileSystem())
