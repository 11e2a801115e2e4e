"""The batches of one partition, in order: waiting, in flight, and what idempotence asks of them.

Pure. Invariants, which together give order without duplicates (PR-5, PR-6):

- A batch gets its sequence when it is first taken, and sequences are taken in order.
- At most five batches are in flight, which is what a broker remembers of a producer.
- The first batch of an identity travels alone: of a producer that it does not know a broker takes
  any first sequence, so one behind a refused batch would be stored under a sequence that moves up.
- After any failure nothing more is taken until every batch in flight has its answer ("settling");
  then the failed ones go again first, in their order and with their bytes. So a later batch never
  overtakes an earlier one that is sent again.
- A batch that the broker refused for good was not appended, so none behind it was either (the
  broker refuses gaps): those behind it move up in the sequence.
"""

from __future__ import annotations

from collections import deque

from barnabas.client.batch import ProducerBatch
from barnabas.types import TopicPartition

_SEQUENCE_LIMIT = 2**31  # sequences wrap to 0 behind the largest int32


class PartitionQueue:
    __slots__ = (
        "in_flight",
        "is_known",
        "next_sequence",
        "not_before_ms",
        "settling",
        "topic_partition",
        "waiting",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.waiting: deque[ProducerBatch] = deque()  # oldest first; only the last one is open
        self.in_flight: list[ProducerBatch] = []  # oldest first
        self.is_known = False  # the leader has something of this identity
        self.next_sequence = 0
        self.not_before_ms = 0
        self.settling = False

    def open_batch(self) -> ProducerBatch | None:
        """The batch that more records may join, if there is one that was never taken."""
        if self.waiting:
            last = self.waiting[-1]
            if last.attempts == 0:
                return last
        return None

    def take(self, idempotent: bool) -> ProducerBatch:
        """Move the first waiting batch into flight, under the next sequence if it has none."""
        batch = self.waiting.popleft()
        if idempotent and batch.base_sequence < 0:
            batch.base_sequence = self.next_sequence
            self.next_sequence = (self.next_sequence + batch.record_count) % _SEQUENCE_LIMIT
        batch.sent_sequence = batch.base_sequence
        batch.attempts += 1
        self.in_flight.append(batch)
        return batch

    def acknowledged(self, batch: ProducerBatch) -> None:
        self.is_known = True
        self._land(batch)

    def put_back(self, batch: ProducerBatch, not_before_ms: int) -> None:
        """The batch is to be sent again, in its old place, no earlier than `not_before_ms`."""
        self.settling = True
        self.not_before_ms = max(self.not_before_ms, not_before_ms)
        place = 0
        for waiting in self.waiting:
            if batch.number < waiting.number:
                break
            place += 1
        self.waiting.insert(place, batch)
        self._land(batch)

    def refused(self, batch: ProducerBatch) -> None:
        """The broker does not have this batch and never will, nor any that was sent behind it."""
        self.settling = True
        if batch.base_sequence >= 0:
            for later in (*self.in_flight, *self.waiting):
                if later.base_sequence >= 0 and later.number > batch.number:
                    moved_up = (later.base_sequence - batch.record_count) % _SEQUENCE_LIMIT
                    later.base_sequence = moved_up
            self.next_sequence = (self.next_sequence - batch.record_count) % _SEQUENCE_LIMIT
        self._land(batch)

    def is_first_unacknowledged(self, batch: ProducerBatch) -> bool:
        """Whether no older batch of the partition is still without its outcome."""
        return not any(other.number < batch.number for other in (*self.in_flight, *self.waiting))

    def forget_sequences(self) -> None:
        """Begin at 0 again, under a new producer id; nothing may be in flight."""
        assert not self.in_flight, "sequences of batches in flight cannot change"
        self.is_known = False
        self.next_sequence = 0
        for batch in self.waiting:
            batch.base_sequence = -1

    def _land(self, batch: ProducerBatch) -> None:
        self.in_flight.remove(batch)
        if not self.in_flight:
            self.settling = False
