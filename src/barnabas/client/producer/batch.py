"""Defines a producer's batch of records for a single partition.

A batch is first open (records are added), then closed (it is encoded once, sent, and resent
unchanged if retried), and then done (acknowledged or failed). It becomes done exactly once. A batch
that was split is done when all of its parts are done. Each record has the outcome of the part that
contains it. Pure: the batch neither waits nor reads a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from barnabas.client.producer.open_records import OpenRecords, SealedRecords
from barnabas.counted import counted
from barnabas.errors import BarnabasError
from barnabas.records.batch import HEADER_BYTES, TRANSACTIONAL, BatchHeader, read_header, seal
from barnabas.records.record import Headers, record_size_bound, records_of
from barnabas.types import TopicPartition

GivenHeaders = Iterable[tuple[str, bytes | str | None]] | Mapping[str, bytes | str | None] | None
"""The accepted forms of a record's headers. Values that are text are encoded as UTF-8."""


class ProducerRecord(NamedTuple):
    """A record to send (PR-1).

    By default, the partitioner chooses the partition, and the timestamp is the current time.

    A bytearray or memoryview is copied when the producer accepts the record.
    """

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: GivenHeaders = ()


class CheckedRecord(NamedTuple):
    """A record that was checked, with copies of mutable bytes (see `arguments.checked_record`)."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp_ms: int | None
    headers: Headers
    size_bytes: int  # the record's maximum size in a batch


class RecordOptions(TypedDict, total=False):
    """Optional fields of a record, for `send(topic, value, key, partition=0, headers=[...])`."""

    partition: int | None
    timestamp_ms: int | None
    headers: GivenHeaders


class SendOptions(RecordOptions, total=False):
    """The optional arguments of `send`."""

    on_delivery: Callable[[Any], Any] | None


class ColumnOptions(TypedDict, total=False):
    """The optional arguments of `send_columns`."""

    partition: Any
    timestamps_ms: Any
    on_delivery: Callable[[Any], Any] | None


class Identity(NamedTuple):
    """The producer id and epoch for which the sequence of a batch is valid."""

    producer_id: int
    producer_epoch: int


SEQUENCE_LIMIT = 2**31  # sequences wrap to 0 after the largest int32
NUMBER_STEP = 2**32
"""The difference between the numbers of two consecutive batches.

The numbers in between are for the parts of a batch that is split.
"""

NO_IDENTITY = Identity(-1, -1)


def _on_any_loop() -> None:
    """Do nothing, because the batch is not bound to a loop."""


class ProducerBatch:
    """A batch of records for one partition. They are sent together and have the same outcome."""

    __slots__ = (
        "_callbacks",
        "attempts",
        "base_offset",
        "base_sequence",
        "check_loop",
        "counted_bytes",
        "created_ms",
        "done",
        "encoded",
        "error",
        "identity",
        "in_doubt",
        "is_out_of_order",
        "is_whole",
        "last_failure",
        "limit_bytes",
        "log_append_time_ms",
        "number",
        "parts",
        "records",
        "sealed_count",
        "sent_sequence",
        "size_bytes",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        number: int,
        codec: int,
        created_ms: int,
        limit_bytes: int = 0,
    ) -> None:
        self.topic_partition = topic_partition
        self.number = number  # grows with each batch of a partition; defines the order
        self.records: OpenRecords | SealedRecords | None = OpenRecords(codec)  # None once encoded
        self.encoded: bytes | None = None
        self.sealed_count = 0  # the number of records, once encoded
        self.size_bytes = HEADER_BYTES  # an upper bound without compression
        self.limit_bytes = limit_bytes  # more records may join below this size; 0: none may
        self.counted_bytes = 0  # bytes that the partitioner has counted
        self.created_ms = created_ms
        self.attempts = 0
        self.base_sequence = -1  # -1 until one is assigned
        # as in the last request; base_sequence may have changed since
        self.sent_sequence = -1
        self.identity = NO_IDENTITY  # the identity under which base_sequence was assigned
        self.in_doubt = False  # an attempt failed without a known outcome
        self.is_out_of_order = (
            False  # the last attempt was rejected as out of order, though our order is right
        )
        self.is_whole = False
        # the error of a failed attempt that will be retried
        self.last_failure: BarnabasError | None = None
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.error: BarnabasError | None = None
        self.done = False
        # the parts of a split batch, in record order
        self.parts: Sequence[ProducerBatch] = ()
        self.check_loop = _on_any_loop  # raises ClientClosed on a loop other than the producer's
        self._callbacks: list[Callable[[], None]] = []

    @classmethod
    def of_bytes(
        cls, topic_partition: TopicPartition, number: int, encoded: bytes, created_ms: int
    ) -> ProducerBatch:
        """Return a batch that is already encoded. No record can be added to it."""
        batch = cls(topic_partition, number, 0, created_ms)
        batch.records, batch.encoded = None, encoded
        batch.sealed_count = read_header(encoded).record_count
        batch.size_bytes = len(encoded)
        batch.is_whole = True
        return batch

    @classmethod
    def of_records(
        cls, topic_partition: TopicPartition, number: int, records: SealedRecords, created_ms: int
    ) -> ProducerBatch:
        """Return a batch of encoded records. No record can be added to it."""
        batch = cls(topic_partition, number, 0, created_ms)
        batch.records = records
        batch.size_bytes = HEADER_BYTES + len(records.body)
        return batch

    @property
    def is_divisible(self) -> bool:
        """Whether the batch has several records and was not created by `of_bytes`."""
        return self.attempts > 0 and self.record_count > 1 and not self.is_whole

    def split(self) -> list[ProducerBatch]:
        """Split the batch into parts of about half its size, which keep its sequences (KIP-126).

        The outcome of the batch is then determined by its parts.
        """
        assert self.encoded is not None, "the batch was never sent"
        # Decode the records, because the originals were dropped when the batch was encoded. Split
        # in halves, because the broker's limit is unknown; a rejected part is split in turn.
        header = read_header(self.encoded)
        records = list(records_of(self.encoded, 0, header))
        sizes = [record_size_bound(each.key, each.value, each.headers) for each in records]
        most_bytes = HEADER_BYTES + sum(sizes) // 2
        parts: list[ProducerBatch] = []
        for place, (record, size_bytes) in enumerate(zip(records, sizes, strict=True)):
            if not parts or parts[-1].size_bytes + size_bytes > most_bytes:
                parts.append(self._part(place, header.codec))
            parts[-1].append(record.timestamp, record.key, record.value, record.headers, size_bytes)
        self.encoded = None
        self.parts = parts
        for part in parts:
            part.when_done(self._part_done)
        return parts

    def _part(self, first: int, codec: int) -> ProducerBatch:
        """Return an empty batch for the records from index `first` on."""
        part = ProducerBatch(self.topic_partition, self.number + first, codec, self.created_ms)
        part.in_doubt = self.in_doubt
        part.last_failure = self.last_failure
        if self.base_sequence >= 0:
            part.identity = self.identity
            part.base_sequence = (self.base_sequence + first) % SEQUENCE_LIMIT
        return part

    def _part_done(self) -> None:
        # The first error stands for the whole batch; each record has the outcome of its part
        # (`at`).
        if all(part.done for part in self.parts):
            self.error = next((part.error for part in self.parts if part.error), None)
            self._finish()

    def at(self, index: int) -> tuple[ProducerBatch, int]:
        """Return the batch that contains the record at this index, and the index in that batch."""
        batch = self
        while batch.parts:
            for part in batch.parts:
                if index < part.record_count:
                    break
                index -= part.record_count
            batch = part
        return batch, index

    @property
    def record_count(self) -> int:
        return self.sealed_count if self.records is None else self.records.count

    def append(
        self,
        timestamp_ms: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        size_bytes: int,
    ) -> int:
        """Add a record of at most `size_bytes` bytes, and return its index in the batch."""
        records = self.records
        assert type(records) is OpenRecords, "the batch was encoded already"
        index = len(records.values)
        records.append(timestamp_ms, key, value, headers)
        self.size_bytes += size_bytes
        return index

    def encode(self, *, is_transactional: bool = False) -> bytes:
        """Return the bytes to send, with the current identity and sequence of the batch.

        Records are encoded (and compressed) only once. A retry sends the same bytes, with a new
        header only if the batch was renumbered.
        """
        if self.records is not None:
            header, body = self.records.build()
            self._close()
            self.encoded = seal(self._with_identity(header, is_transactional), body)
        elif self.base_sequence >= 0:
            # Either the batch moved up because an earlier one was rejected, or the identity
            # changed.
            assert self.encoded is not None, "the batch is done"
            header = read_header(self.encoded)
            owned = self._with_identity(header, is_transactional)
            if owned != header:
                self.encoded = seal(owned, memoryview(self.encoded)[HEADER_BYTES:])
        assert self.encoded is not None, "the batch is done"
        return self.encoded

    def _with_identity(self, header: BatchHeader, is_transactional: bool) -> BatchHeader:
        """Return the header with the identity and the sequence of the batch, if it has any."""
        if self.base_sequence < 0:
            return header
        return header._replace(
            attributes=header.attributes | (TRANSACTIONAL if is_transactional else 0),
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
            base_sequence=self.base_sequence,
        )

    def _close(self) -> None:
        """Drop the records, because they are encoded or no longer needed."""
        self.sealed_count = self.record_count
        self.records = None
        self.limit_bytes = 0

    def complete(self, base_offset: int, log_append_time_ms: int) -> None:
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self._finish()

    def fail(self, error: BarnabasError) -> None:
        self.error = error
        self._finish()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the outcome is known. This may be immediately."""
        if self.done:
            callback()
        else:
            self._callbacks.append(callback)

    def _finish(self) -> None:
        assert not self.done, "a batch has one outcome"
        self.done = True
        self._close()
        # A Delivery held by the user must not keep the bytes or the producer alive.
        self.encoded = None
        self.check_loop = _on_any_loop
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def __repr__(self) -> str:
        return (
            f"ProducerBatch({self.topic_partition}, {counted(self.record_count, 'record')}, "
            f"sequence {self.base_sequence}, attempts {self.attempts})"
        )
