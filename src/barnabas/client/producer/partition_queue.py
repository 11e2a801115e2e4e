"""Queues the batches of one partition in order, with their sequences for idempotence.

Pure. Invariants, which together guarantee order without duplicates (PR-5, PR-6):

- A batch gets its sequence when it is first taken, and sequences are assigned in order.
- At most five batches are in flight, the number that a broker remembers for a producer.
- The first batch of an identity is sent alone. A broker accepts any first sequence from an unknown
  producer, so a batch behind a rejected one would be stored under a sequence that moves up.
- After any failure no batch is taken until every batch in flight has been answered ("settling");
  then the failed batches are retried first, in their order and with the same bytes. A batch never
  overtakes an earlier one being retried.
- A batch that the broker rejected for good was not appended, and neither was any batch behind it
  (the broker rejects gaps), so the batches behind it move up in the sequence.
- A batch given up in doubt leaves the partition unresolved (KIP-360): the batches behind it, under
their current sequences, show whether the leader has it. If one of them is stored, so is the
  doubtful batch. If all are rejected, or none is left, the sequences are lost. Until then, no batch
  is assigned a sequence. (If the batches behind it were sent immediately under another identity,
  those that lost only their responses would be stored twice.)
- For the same reason, a batch older than an acknowledged batch is stored, even if the broker
  rejects it as out of order: after loading a snapshot, it remembers only a producer's last batch.
- A batch that is split leaves its place and its sequences to its parts (KIP-126).
- Only this partition's sequences are lost: the other partitions keep the identity that their
  leaders know, under which a repeated batch is recognised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from barnabas.client.producer.batch import SEQUENCE_LIMIT, Identity, ProducerBatch
from barnabas.types import TopicPartition


class PartitionQueue:
    """The batches of one partition, waiting or in flight, with their sequences."""

    __slots__ = (
        "identity",
        "in_flight",
        "is_lost",
        "last_acknowledged",
        "next_sequence",
        "not_before_ms",
        "settling",
        "topic_partition",
        "unresolved",
        "waiting",
    )

    def __init__(self, topic_partition: TopicPartition, identity: Identity) -> None:
        self.topic_partition = topic_partition
        self.waiting: deque[ProducerBatch] = deque()  # oldest first; only the last one is open
        self.in_flight: list[ProducerBatch] = []  # oldest first
        self.identity = identity
        self.is_lost = False  # the next sequence is unknown
        self.unresolved = -1  # number of the youngest batch given up in doubt; -1: none
        self.last_acknowledged = -1  # number of the youngest acknowledged batch of this identity
        self.next_sequence = 0
        self.not_before_ms = 0
        self.settling = False

    @property
    def is_known(self) -> bool:
        """Whether the leader of the partition has stored a batch of this identity."""
        return self.last_acknowledged >= 0

    def open_batch(self) -> ProducerBatch | None:
        """Return the batch that more records may join, if any. It has never been taken."""
        if self.waiting:
            last = self.waiting[-1]
            if last.limit_bytes:
                return last
        return None

    def next_batch(self) -> ProducerBatch:
        """The oldest batch that may be sent.

        A batch that was rejected as out of order waits until every batch sent after it has been
        rejected too, or one of them has been acknowledged.
        """
        first = self.waiting[0]
        if first.is_out_of_order:
            for batch in self._sent():
                if not batch.is_out_of_order:
                    return batch
        return first

    @property
    def is_held(self) -> bool:
        """Whether the next batch must wait for responses to the batches that are in flight."""
        if self.settling:
            return True
        following = self.next_batch()
        # Assign no sequence number while it is unknown whether an earlier batch is stored.
        if self.unresolved >= 0 and following.base_sequence < 0:
            return True
        # Later batches in flight may prove that the leader has this one.
        return bool(self.in_flight) and following.is_out_of_order

    @property
    def is_unresolvable(self) -> bool:
        """Whether a batch was given up and no batch is left that could reveal its outcome."""
        return self.unresolved >= 0 and not self.in_flight and not any(self._sent())

    def take(self, idempotent: bool) -> ProducerBatch:
        """Move the next batch into flight. If it has no sequence, assign the next one to it."""
        batch = self.next_batch()
        if batch is self.waiting[0]:  # all batches are retried, at the current leader
            self._forget_refusals()
        self.waiting.remove(batch)
        if idempotent and batch.base_sequence < 0:
            batch.identity = self.identity
            batch.base_sequence = self.next_sequence
            self.next_sequence = (self.next_sequence + batch.record_count) % SEQUENCE_LIMIT
        batch.sent_sequence = batch.base_sequence
        batch.attempts += 1
        batch.limit_bytes = 0
        self.in_flight.append(batch)
        return batch

    def acknowledge(self, batch: ProducerBatch) -> None:
        """Remove a stored batch. This resolves any doubt about an earlier batch."""
        self.last_acknowledged = max(self.last_acknowledged, batch.number)
        if self.last_acknowledged > self.unresolved:
            self.unresolved = -1
        self._land(batch)

    def take_stored(self) -> list[ProducerBatch]:
        """Take batches that were rejected as out of order but are older than an acknowledged batch.

        They are known to be stored, so they need not be retried.
        """
        stored = [
            batch
            for batch in self._sent()
            if batch.is_out_of_order and batch.number < self.last_acknowledged
        ]
        for batch in stored:
            self.waiting.remove(batch)
        return stored

    def put_back(self, batch: ProducerBatch, not_before_ms: int) -> None:
        """Put the batch back in its old place, to be retried at `not_before_ms` at the earliest."""
        if not batch.is_out_of_order:
            # Rejections count only if every sent batch was rejected, but this one had another
            # error.
            self._forget_refusals()
        self.settling = True
        self.not_before_ms = max(self.not_before_ms, not_before_ms)
        self._insert(batch)
        self._land(batch)

    def replace(self, batch: ProducerBatch, parts: Sequence[ProducerBatch]) -> None:
        """Replace the batch in flight with these parts."""
        self._forget_refusals()
        self.settling = True
        for part in parts:
            self._insert(part)
        self._land(batch)

    def _insert(self, batch: ProducerBatch) -> None:
        # Order by number, so that batches sent earlier come first, and the parts of a split batch
        # lie in between.
        place = 0
        for waiting in self.waiting:
            if batch.number < waiting.number:
                break
            place += 1
        self.waiting.insert(place, batch)

    def give_up(self, batch: ProducerBatch) -> None:
        """Remember a batch whose outcome is unknown and that is no longer in either list."""
        self.unresolved = max(self.unresolved, batch.number)

    def give_up_in_flight(self, batch: ProducerBatch) -> None:
        """Give up a batch in flight. The batches sent after it will resolve the doubt (KIP-360)."""
        self.settling = True
        self.give_up(batch)
        self._land(batch)

    def refuse(self, batch: ProducerBatch) -> None:
        """Drop a batch. The broker has stored neither this batch nor any batch sent after it."""
        self.settling = True
        if batch.base_sequence >= 0:
            # Its sequences become free. The batches in flight behind it also move up. The broker
            # rejects them under the sequences they were sent with, and they are retried with their
            # new sequences.
            for later in (*self.in_flight, *self.waiting):
                if later.base_sequence >= 0 and later.number > batch.number:
                    moved_up = (later.base_sequence - batch.record_count) % SEQUENCE_LIMIT
                    later.base_sequence = moved_up
            self.next_sequence = (self.next_sequence - batch.record_count) % SEQUENCE_LIMIT
        self._land(batch)

    def is_first_unacknowledged(self, batch: ProducerBatch) -> bool:
        """Return whether all older batches of the partition have an outcome."""
        return not any(other.number < batch.number for other in (*self.in_flight, *self.waiting))

    def is_out_of_step(self, batch: ProducerBatch) -> bool:
        """Return whether all sent batches, this one last, were rejected as out of order.

        As long as one batch has no response, its response may show that the leader has them all.
        """
        return self.in_flight == [batch] and all(
            each.is_out_of_order for each in (*self._sent(), batch)
        )

    def restart(self, identity: Identity) -> None:
        """Restart the sequences at 0 under a new identity. There must be no batch in flight."""
        assert not self.in_flight, "sequences of batches in flight cannot change"
        self.identity = identity
        self.is_lost = False
        self.unresolved = -1
        self.last_acknowledged = -1
        self.next_sequence = 0
        self._forget_refusals()
        for batch in self.waiting:
            batch.base_sequence = -1

    def _sent(self) -> Iterator[ProducerBatch]:
        """Yield the batches that wait for a retry, oldest first. They precede all new batches."""
        for batch in self.waiting:
            if batch.base_sequence < 0:
                return
            yield batch

    def _forget_refusals(self) -> None:
        for batch in self._sent():
            batch.is_out_of_order = False

    def _land(self, batch: ProducerBatch) -> None:
        self.in_flight.remove(batch)
        # After the last response, retries can start, in order and before new batches.
        if not self.in_flight:
            self.settling = False
