"""Returns the records of a chunk in portions, and deserializes them one at a time. Pure.

If data is corrupt or a deserializer fails, the preceding records are returned first; then the
failure becomes the error of the partition. The position stays at the failing record, so that the
user can seek past it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.client.consumer.assignment import AssignedPartition
from barnabas.client.consumer.fetched import Chunk, ConsumerRecord
from barnabas.client.errors import RecordDeserializationError, SerializationError
from barnabas.errors import CorruptData

Deserialize = Callable[[ConsumerRecord], ConsumerRecord]


def deserialization(
    key: Callable[[bytes], Any] | None, value: Callable[[bytes], Any] | None
) -> Deserialize | None:
    """Return a function that deserializes a record's key and value, or None if both stay bytes."""
    if key is None and value is None:
        return None
    from barnabas.client.serialization import deserialize  # imported only if used

    def convert(record: ConsumerRecord) -> ConsumerRecord:
        place = f"offset {record.offset} of {record.topic_partition}"
        try:
            if key is not None:
                record = record._replace(key=deserialize(key, record.key, "key", place))
            if value is not None:
                record = record._replace(value=deserialize(value, record.value, "value", place))
        except SerializationError as error:
            failure = RecordDeserializationError(f"{error}; seek to {record.offset + 1} to skip it")
            failure.topic_partition = record.topic_partition
            failure.offset = record.offset
            raise failure from error.__cause__
        return record

    return convert


class Reading:
    """A chunk that is being read, and how far the user has read it."""

    __slots__ = ("_at", "_chunk", "_deserialize", "_generation", "_lists", "_records", "state")

    def __init__(
        self,
        state: AssignedPartition,
        chunk: Chunk,
        *,
        check_crcs: bool,
        deserialize: Deserialize | None = None,
    ) -> None:
        self.state = state
        self._generation = state.generation
        self._chunk = chunk
        self._deserialize = deserialize
        self._lists = chunk.lists(check_crcs=check_crcs)
        self._records: list[ConsumerRecord] = []  # the records of the batch in use
        self._at = 0  # the index of the next record

    def next_record(self) -> ConsumerRecord | None:
        """Return the next record of the batch in use, or None if `take_into` must be called."""
        state = self.state
        if (
            self._at >= len(self._records)
            or state.paused
            or self._deserialize is not None
            or not state.is_current(self._generation)
        ):
            return None
        record = self._records[self._at]
        self._at += 1
        state.advance(record.offset + 1, self._chunk.epoch)
        return record

    def take_into(self, records: list[ConsumerRecord], most: int) -> bool:
        """Fill `records` up to `most`. Returns False if the chunk is exhausted or given back."""
        state = self.state
        if not state.is_current(self._generation):
            return False  # the user called seek, or the partition was revoked
        if state.paused:
            self.give_back()
            return False
        try:
            while len(records) < most:
                if self._at == len(self._records):
                    following = next(self._lists, None)
                    if following is None:
                        state.advance(self._chunk.next_offset, self._chunk.last_epoch)
                        return False
                    self._records, self._at = following, 0
                self._take_of_batch(records, most - len(records))
        except (CorruptData, RecordDeserializationError) as error:
            self.give_back()
            state.error = error
            return False
        return True

    def _take_of_batch(self, records: list[ConsumerRecord], most: int) -> None:
        state, epoch = self.state, self._chunk.epoch
        part = self._records[self._at : self._at + most]
        if self._deserialize is None:
            records += part
            self._at += len(part)
            if part:
                state.advance(part[-1].offset + 1, epoch)
            return
        for record in part:
            records.append(self._deserialize(record))
            self._at += 1
            state.advance(record.offset + 1, epoch)

    def give_back(self) -> None:
        """Give up the remaining records. They will be fetched again."""
        if self.state.is_current(self._generation):
            self.state.refetch()
