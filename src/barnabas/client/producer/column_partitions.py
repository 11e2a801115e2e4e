"""Chooses the partitions of whole columns: as given, by key, or without one (PR-2). Pure."""

from __future__ import annotations

from typing import Any

import numpy as np

from barnabas.client import arguments
from barnabas.client.producer.column_rows import ColumnRows, whole_numbers
from barnabas.client.producer.murmur2_columns import partitions_for_keys
from barnabas.client.producer.partitioner import Partitioner, Partitions
from barnabas.records.byte_column import Integers


def given_partitions(partition: Any, count: int) -> Integers:
    """The partition of each row: one number for all, or one for each."""
    numbers = whole_numbers(partition, count, "partition")
    if count and int(numbers.max()) > arguments.INT32_MAX:
        raise ValueError(f"partition: {numbers.max()} is not in 0 to {arguments.INT32_MAX}")
    return numbers


def chosen_partitions(
    partitioner: Partitioner, topic: str, choice: Partitions, rows: ColumnRows
) -> Integers:
    """The partition of each row, by its key or without one."""
    sizes = rows.sizes()
    if rows.keys is None:
        return _keyless(partitioner, topic, choice, sizes)
    chosen = partitions_for_keys(rows.keys, choice.partition_count)
    nulls = rows.keys.nulls
    if nulls is not None:
        chosen[nulls] = _keyless(partitioner, topic, choice, sizes[nulls])
    return chosen


def _keyless(partitioner: Partitioner, topic: str, choice: Partitions, sizes: Integers) -> Integers:
    """As many rows to each partition as the partitioner stays with it."""
    sums = np.cumsum(sizes)
    partitions, ends = [], [0]
    while ends[-1] < len(sizes):
        first = ends[-1]
        partitions.append(partitioner.partition(topic, None, choice))
        before = int(sums[first - 1]) if first else 0
        stays_bytes = partitioner.stays_bytes(topic)
        # It stays until so many bytes are exceeded, so the row that exceeds them goes there.
        end = int(np.searchsorted(sums, before + stays_bytes, "left")) + 1
        ends.append(min(end if stays_bytes else first + 1, len(sizes)))
        partitioner.appended(topic, int(sums[ends[-1] - 1]) - before)
    return np.repeat(np.array(partitions, np.int64), np.diff(ends))
