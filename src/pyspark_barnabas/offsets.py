"""Handles the offsets of a query: converts them to JSON, limits a micro-batch to a share of the
backlog, and divides a micro-batch into ranges for the tasks.

The module is pure. The state of the log is passed in as numbers, so when a micro-batch is replayed,
the same ranges are planned without sending any request.

An offset has the form that Spark's Kafka connector writes into the checkpoint, with two additional
keys:

    {"@ids": {"web": "FSAQdDVOSNC33pgt9SlwTQ"}, "@start": {"web": {"1": 40}},
     "web": {"0": 120, "1": 55}}

The numbers are the offsets at which the next batch starts. `@ids` contains the topic ids: a topic
that was deleted and recreated has a different id, and the numbers are not valid offsets in the new
topic (decision 19). `@start` contains the *start* of this batch in each partition for which the
previous offset has no number, or an invalid number. In the first batch, these are all partitions;
later, they are partitions that were added, or that lost records if the user chose to continue.
Topic names cannot contain an `@`.

This module also fixes the first offset. Spark calls `initialOffset()` more than once and does not
store the result, so "latest" would differ between calls and between runs. The records in between
would be lost, or a batch would end before its start. `initialOffset()` therefore returns the
constant `{}`, and `latestOffset` resolves the user's option only once and includes the result in
the *end* of the first batch, which Spark writes to its offset log before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from barnabas.errors import CorruptData
from barnabas.types import TopicPartition

Offsets = Mapping[TopicPartition, int]

_START = "@start"
_IDS = "@ids"
_NO_IDS: Mapping[str, str] = MappingProxyType({})


class StreamOffset(NamedTuple):
    """Represents the end of a micro-batch, which is also the start of the next micro-batch."""

    positions: Offsets
    starts: Offsets
    ids: Mapping[str, str] = _NO_IDS  # of topics, in Kafka's notation; unknown ids are omitted

    def to_json(self) -> dict[str, Any]:
        """Return the dictionary that Spark stores. Its keys are sorted, because Spark compares
        offsets as text.

        The dictionary is never empty, even if it contains no partition because a pattern has no
        match yet. An empty dictionary denotes the start of a query, whereas topics that match later
        are read from their start.
        """
        encoded = _nested(self.positions)
        if self.starts or not encoded:
            encoded = {_START: _nested(self.starts), **encoded}
        if self.ids:
            encoded = {_IDS: dict(sorted(self.ids.items())), **encoded}
        return encoded

    @classmethod
    def from_json(cls, encoded: Mapping[str, Any]) -> StreamOffset:
        """Return the offset from a checkpoint. Raises `CorruptData` if the offset is not in our
        format.
        """
        try:
            topics = {name: each for name, each in encoded.items() if name not in (_START, _IDS)}
            ids = {name: str(each) for name, each in encoded.get(_IDS, {}).items()}
            return cls(_flat(topics), _flat(encoded.get(_START, {})), ids)
        except (AttributeError, TypeError, ValueError):
            raise CorruptData(f"not an offset of format barnabas: {encoded}") from None


class OffsetRange(NamedTuple):
    """A range from `start` (inclusive) to `end` (exclusive).

    Its length is a number of offsets, not of rows, because compaction leaves gaps.
    """

    topic_partition: TopicPartition
    start: int
    end: int
    topic_id: str | None = None  # of the topic for which it was planned; None if unknown

    @property
    def size(self) -> int:
        return self.end - self.start


def ranges_between(start: StreamOffset, end: StreamOffset) -> list[OffsetRange]:
    """Return the ranges of a micro-batch, one per partition; empty ranges are omitted."""
    ranges = []
    for partition in sorted(end.positions):
        begin = end.starts.get(partition, start.positions.get(partition))
        if begin is None:
            raise CorruptData(
                f"the checkpoint has no start for {partition}: an entry of its offset log is"
                " missing, or the Kafka connector planned the batch, and only it knows the start of"
                " its first batch and of new partitions. Let it finish the batch before"
                " format barnabas continues from its checkpoint"
            )
        if begin < end.positions[partition]:
            topic_id = end.ids.get(partition.topic)
            ranges.append(OffsetRange(partition, begin, end.positions[partition], topic_id))
    return ranges


def shares(backlog: Offsets, limit: int) -> dict[TopicPartition, int]:
    """Return each partition's share of its backlog in a batch of at most `limit` offsets.

    Shares are proportional to the backlogs, so that large and small partitions advance through time
    at the same pace. If one partition ran ahead, its rows would move the watermark past the rows of
    the other partitions. Each partition gets at least one offset if the limit permits; otherwise,
    the partitions with the longest backlogs come first.
    """
    total = sum(backlog.values())
    if total <= limit:
        return dict(backlog)
    waiting = sorted((p for p in backlog if backlog[p]), key=lambda p: (-backlog[p], p))[:limit]
    granted = dict.fromkeys(backlog, 0)
    # Each partition gets one offset, and a share of the remaining offsets in proportion to the rest
    # of its backlog.
    spare, rest = limit - len(waiting), sum(backlog[p] - 1 for p in waiting)
    for partition in waiting:
        granted[partition] = 1 + (backlog[partition] - 1) * spare // rest if rest else 1
    left = limit - sum(granted.values())
    for partition in waiting:  # one each, the remainder from rounding down
        if left and granted[partition] < backlog[partition]:
            granted[partition] += 1
            left -= 1
    return granted


def split(
    ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """Split ranges into about `min_partitions` pieces of at most `max_records` offsets."""
    total = sum(each.size for each in ranges)
    pieces: list[OffsetRange] = []
    for each in ranges:
        parts = 1
        if max_records:
            parts = -(-each.size // max_records)
        # As in Spark's connector, split ranges in proportion to their sizes, and only if there are
        # fewer than requested.
        if min_partitions and len(ranges) < min_partitions:
            parts = max(parts, round(min_partitions * each.size / total))
        pieces.extend(_cut(each, min(parts, each.size)))
    return pieces


def pack(ranges: Iterable[OffsetRange], most: int) -> list[list[OffsetRange]]:
    """Group successive ranges into lists with at most `most` offsets in total. A longer range gets
    a list of its own.
    """
    lists: list[list[OffsetRange]] = []
    size = 0
    for each in ranges:
        size += each.size
        if not lists or size > most:
            lists.append([])
            size = each.size
        lists[-1].append(each)
    return lists


def _cut(whole: OffsetRange, parts: int) -> Iterable[OffsetRange]:
    for part in range(parts):
        start = whole.start + whole.size * part // parts
        end = whole.start + whole.size * (part + 1) // parts
        yield whole._replace(start=start, end=end)


def _nested(offsets: Offsets) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for topic, partition in sorted(offsets):
        nested.setdefault(topic, {})[str(partition)] = offsets[TopicPartition(topic, partition)]
    return nested


def _flat(nested: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, numbers in nested.items()
        for partition, offset in numbers.items()
    }
