"""Reads the part of a fetch response that contains one partition, and the records in it. Pure.

A chunk consists of whole batches, as sent by the broker, and the first batch may begin before the
requested offset. With `read_committed`, the records of aborted transactions are skipped. The broker
lists the producer and the first offset of each aborted transaction; an abort marker in the data
shows where the transaction ends (KIP-98).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.batch import BatchHeader, iterate_batches, verify_crc
from barnabas.records.control_records import ABORT, read_marker
from barnabas.records.record import Record, plain_records, records_of, walk_records
from barnabas.records.uniform_records import read_uniform
from barnabas.types import TopicPartition


class ConsumerRecord(NamedTuple):
    """A record as returned by a consumer. Without deserializers, key and value are bytes."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int  # -1: none
    timestamp_type: int  # 0: set by the producer, 1: set by the broker
    key: Any  # None: none
    value: Any  # None: a tombstone
    headers: tuple[tuple[str, bytes | None], ...]

    @property
    def timestamp(self) -> int:
        """An alias of `timestamp_ms`, named as in other clients."""
        return self.timestamp_ms

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition from which the record was read."""
        return TopicPartition(self.topic, self.partition)


_UNKNOWN = -1

_new_record: Callable[[tuple[Any, ...]], ConsumerRecord] = partial(tuple.__new__, ConsumerRecord)


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class FetchedBytes(NamedTuple):
    """The raw record batches of one partition, with the offsets reported by the broker.

    `records` is a view of the response, so it keeps the whole response in memory.
    """

    records: memoryview  # whole batches; the caller skips records below `offset`
    high_watermark: int
    log_start_offset: int
    last_stable_offset: int
    offset: int  # the offset that was requested
    next_offset: int  # the offset at which the next fetch begins
    aborted: tuple[AbortedTransaction, ...] = ()  # only with read_committed


class _Taken(NamedTuple):
    """How far the batches of a chunk have been accepted."""

    end: int
    next_offset: int
    last_epoch: int


class Chunk:
    """The records of one partition in a fetch response."""

    __slots__ = (
        "aborted",
        "epoch",
        "last_epoch",
        "next_offset",
        "offset",
        "records",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        offset: int,
        records: memoryview,
        aborted: Sequence[AbortedTransaction] = (),
        high_watermark: int = _UNKNOWN,
    ) -> None:
        self.topic_partition = topic_partition
        self.offset = offset
        self.next_offset = offset
        self.epoch = -1  # the leader epoch of the last record that `iterate` returned
        self.last_epoch = -1  # the leader epoch of the last batch
        end = self._end_of_order(records, high_watermark)
        self.records = records[:end]  # without the incomplete batch that may end a response
        self.aborted = tuple(aborted)

    def _end_of_order(self, records: memoryview, high_watermark: int) -> int:
        """Find the end of the intact batches with plausible offsets; `next_offset` follows it.

        The checksum of a batch does not cover its length and base offset. Compaction leaves gaps,
        but batches never overlap, and no batch is above the high watermark. A batch after a gap is
        accepted if the next batch is consistent with it. If the last batch follows a gap, it is not
        accepted yet: the next fetch begins with this batch. Raises CorruptData if the first batch
        is damaged.
        """
        end, reason = 0, ""
        before: _Taken | None = None  # up to any doubtful batch after a gap
        try:
            for position, header in iterate_batches(records):
                base_offset, last_offset = header.base_offset, header.last_offset
                if last_offset < self.offset == self.next_offset and before is None:
                    # The whole batch is below the position, so no record in it is read. If it is
                    # the last batch, it explains why the fetch returned nothing.
                    end = position + header.size_bytes  # some brokers start a little earlier
                    reason = f"it ends at {last_offset}"
                    continue
                if header.magic < 2:
                    base_offset = min(last_offset, self.next_offset)  # only the end is known
                is_first = self.next_offset == self.offset
                if last_offset < base_offset or (base_offset < self.next_offset and not is_first):
                    reason = f"offset {base_offset} cannot follow {self.next_offset - 1}"
                    break
                before, reason = None, ""
                # There is a gap. Either compaction caused it, or the offset of the batch is
                # damaged. The next batch shows which.
                if base_offset > self.next_offset:
                    before = _Taken(end, self.next_offset, self.last_epoch)
                end = position + header.size_bytes
                self.next_offset = last_offset + 1
                self.last_epoch = header.partition_leader_epoch
        except CorruptData as error:
            # Return the intact batches; the next fetch starts with the damaged one.
            if not end:
                raise self._damage_error(str(error)) from error
        # The last batch follows a gap. If it ends at the high watermark, no other evidence is
        # needed.
        if before is not None and self.next_offset != high_watermark:
            if _UNKNOWN < high_watermark < self.next_offset:
                reason = f"it ends at {self.next_offset - 1}, the log at {high_watermark}"
            if reason or before.next_offset > self.offset:
                end, self.next_offset, self.last_epoch = before
        if reason and self.next_offset == self.offset:
            raise self._damage_error(reason)
        return end

    def _damage_error(self, reason: str) -> CorruptData:
        return CorruptData(
            f"partition {self.topic_partition}: the batch at offset {self.offset} is damaged: "
            f"{reason}; seek past it"
        )

    def iterate(self, *, check_crcs: bool) -> Iterator[ConsumerRecord]:
        """Yield the records from `offset` on. Raises CorruptData, which states the location."""
        for records in self.lists(check_crcs=check_crcs):
            yield from records

    def lists(self, *, check_crcs: bool) -> Iterator[list[ConsumerRecord]]:
        """Yield a list of records for each batch, from `offset` on.

        Raises CorruptData, as `iterate` does, but only after yielding the records before the
        damaged record.
        """
        try:
            for position, header in self.visible_batches(check_crcs):
                self.epoch = header.partition_leader_epoch
                found: list[ConsumerRecord] = []
                try:
                    self._read(position, header, found)
                except CorruptData:
                    yield found
                    raise
                if found:
                    yield found
        except CorruptData as error:
            raise CorruptData(f"partition {self.topic_partition}: {error}") from error

    def _read(self, position: int, header: BatchHeader, found: list[ConsumerRecord]) -> None:
        """Append the records of one batch to `found`, including those before a damaged record."""
        if header.magic != 2:
            records = records_of(self.records, position, header)
        else:
            plain = plain_records(self.records, position, header)
            alike = read_uniform(header, plain)
            # Records of equal size and shape are decoded column by column.
            if alike is not None:
                kind = int(header.has_log_append_time)
                rows = zip(
                    *(repeat(self.topic_partition.topic), repeat(self.topic_partition.partition)),
                    *(alike.offsets, alike.timestamps_ms, repeat(kind)),
                    *(alike.keys, alike.values, repeat(())),
                    strict=False,
                )
                found += map(_new_record, rows)
                # The first batch may begin before the position, because brokers send whole batches.
                if header.base_offset < self.offset:
                    del found[: self.offset - header.base_offset]
                return
            records = walk_records(header, plain)
        for record in records:
            if record.offset >= self.offset:
                found.append(self._consumer_record(record))

    def _consumer_record(self, record: Record) -> ConsumerRecord:
        topic, partition = self.topic_partition
        offset, timestamp_ms, key, value, headers, timestamp_type = record
        return ConsumerRecord(
            topic, partition, offset, timestamp_ms, timestamp_type, key, value, headers
        )

    def visible_batches(self, check_crcs: bool) -> Iterator[tuple[int, BatchHeader]]:
        """Yield the position and the header of each batch that the user may see.

        Markers and aborted records are omitted. Raises CorruptData.
        """
        # The broker lists aborted transactions by first offset. Skip a producer's batches from that
        # offset until the abort marker; its later transactions are unaffected.
        ahead = sorted(self.aborted, key=lambda aborted: aborted.first_offset, reverse=True)
        aborting: dict[int, None] = {}  # producers inside an aborted transaction
        for position, header in iterate_batches(self.records):
            if header.last_offset < self.offset:
                continue
            if check_crcs and not verify_crc(self.records, position, header):
                raise CorruptData(
                    f"the batch at offset {header.base_offset} fails its checksum; seek to "
                    f"{header.last_offset + 1} to skip it"
                )
            while ahead and ahead[-1].first_offset <= header.last_offset:
                aborting[ahead.pop().producer_id] = None
            if header.is_control:
                # Markers are never returned to the user. A commit marker does not end an aborted
                # transaction.
                marker = read_marker(self.records, position, header)
                if marker is not None and marker.type == ABORT:
                    aborting.pop(header.producer_id, None)
            elif not (header.is_transactional and header.producer_id in aborting):
                yield position, header
