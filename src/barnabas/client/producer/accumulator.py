"""Collects records in batches, in one queue per partition, until the sender takes them (PR-3).

    append --> waiting -- take --> in flight -- acknowledge --> stored
                  ^  |                |
                  |  |                `-- fail_attempt --> back to waiting (PR-5), or failed
                  |  `-- expire, fail_waiting --> failed
                  `------- put back in its old place, or split into its parts (KIP-126)

The module is pure: `now_ms` is an argument, and no method waits. It enforces the memory limit
(`buffer.memory` limits the size of the records that have no outcome yet), decides when a batch may
be sent, and manages the identity of the idempotent producer. Every appended record gets exactly one
outcome. A record that failed may still have been stored, because the client cannot know the result
of an attempt without a response.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from barnabas.client.config import ProducerConfig
from barnabas.client.errors import DeliveryTimedOut, Unreachable, reason
from barnabas.client.producer.batch import (
    NO_IDENTITY,
    NUMBER_STEP,
    CheckedRecord,
    Identity,
    ProducerBatch,
)
from barnabas.client.producer.open_records import SealedRecords
from barnabas.client.producer.partition_queue import PartitionQueue
from barnabas.counted import counted
from barnabas.errors import (
    BarnabasError,
    InvalidProducerEpoch,
    KafkaError,
    MessageTooLarge,
    OutOfOrderSequenceNumber,
    UnknownProducerId,
)
from barnabas.records.batch import HEADER_BYTES
from barnabas.records.compression import CODEC_NAMES
from barnabas.types import TopicPartition

_REMEMBERED_BATCHES = 5  # the broker remembers this many batches per producer and partition

# An attempt rejected with any of these errors appended nothing.
SEQUENCE_ERRORS = (OutOfOrderSequenceNumber, UnknownProducerId, InvalidProducerEpoch)


class Ready(NamedTuple):
    """The partitions that are ready to be sent, and when to ask again."""

    queues: list[PartitionQueue]  # partitions with a batch ready to send
    next_ms: int | None  # when the next batch becomes ready or expires


class Statistics:
    """Counts a producer's work per batch and per request, never per record."""

    __slots__ = (
        "acknowledged_batches",
        "acknowledged_bytes",
        "acknowledged_records",
        "failed_records",
        "longest_request_ms",
        "request_ms",
        "requests",
        "retries",
    )

    def __init__(self) -> None:
        self.acknowledged_batches = 0
        self.acknowledged_bytes = 0
        self.acknowledged_records = 0
        self.failed_records = 0
        self.longest_request_ms = 0
        self.request_ms = 0
        self.requests = 0
        self.retries = 0

    def on_answer(self, took_ms: int) -> None:
        """Count a Produce request that was answered."""
        self.requests += 1
        self.request_ms += took_ms
        self.longest_request_ms = max(self.longest_request_ms, took_ms)

    def as_dict(self) -> dict[str, float]:
        """Return the numbers by name, with units. Names in `_total` are counts since the start."""
        return {
            "records_acknowledged_total": self.acknowledged_records,
            "records_failed_total": self.failed_records,
            "batches_acknowledged_total": self.acknowledged_batches,
            "batch_bytes_acknowledged_total": self.acknowledged_bytes,
            "batch_retries_total": self.retries,
            "requests_answered_total": self.requests,
            "records_per_batch_average": _ratio(
                self.acknowledged_records, self.acknowledged_batches
            ),
            "request_latency_average_ms": _ratio(self.request_ms, self.requests),
            "request_latency_longest_ms": self.longest_request_ms,
        }


class Accumulator:
    def __init__(self, config: ProducerConfig) -> None:
        self._config = config
        self._codec = CODEC_NAMES.index(config.compression_type)
        self._most_in_flight = config.max_in_flight_requests_per_connection
        if config.enable_idempotence:
            # A sixth batch in flight would make the broker forget the first, which it could not
            # recognise if it were repeated (PR-6).
            self._most_in_flight = min(self._most_in_flight, _REMEMBERED_BATCHES)
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._active: dict[TopicPartition, PartitionQueue] = {}  # partitions with a waiting batch
        self._batches_made = 0
        self._unfinished: dict[int, ProducerBatch] = {}  # unfinished batches by number
        self.statistics = Statistics()
        self.used_bytes = 0
        self.flushing = 0  # the number of waiting flushes, during which no batch lingers
        self.producer_id = -1
        self.producer_epoch = -1
        self.needs_producer_id = config.enable_idempotence
        self.is_transactional = bool(config.transactional_id)
        self.check_loop: Callable[[], None] = lambda: None
        """Raises an error if it is not called on the producer's loop.

        It is called once per batch, not once per record.
        """

    # ---- adding records ----

    def has_room(self, size_bytes: int) -> bool:
        """Return whether this much more fits into `buffer.memory`. A single record always fits."""
        return self.used_bytes == 0 or (
            self.used_bytes + HEADER_BYTES + size_bytes <= self._config.buffer_memory
        )

    def append(
        self,
        topic_partition: TopicPartition,
        record: CheckedRecord,
        now_ms: int,
        timestamp_ms: int,
    ) -> tuple[ProducerBatch, int]:
        """Append a record to a batch. Returns the batch, and the record's index in the batch.

        `timestamp_ms` is the record's own timestamp, or the wall-clock time if it has none.
        """
        size_bytes = record.size_bytes
        queue = self._queues.get(topic_partition) or self._new_queue(topic_partition)
        batch = queue.open_batch()
        # `size_bytes` is an upper bound, so a batch may be closed a few bytes early, but never
        # late.
        if batch is None or batch.size_bytes + size_bytes > self._config.batch_size:
            limit = self._config.batch_size
            batch = ProducerBatch(topic_partition, self._begin(), self._codec, now_ms, limit)
        index = batch.append(timestamp_ms, record.key, record.value, record.headers, size_bytes)
        self.used_bytes += size_bytes
        if index == 0:  # not earlier, because a failing record must leave no empty batch
            self._enqueue(queue, batch)
            self.used_bytes += HEADER_BYTES
        return batch, index

    def append_encoded(
        self, topic_partition: TopicPartition, encoded: bytes, now_ms: int
    ) -> ProducerBatch:
        """Append a batch that is already encoded to the queue of its partition."""
        return self._append_whole(
            ProducerBatch.of_bytes(topic_partition, self._begin(), encoded, now_ms)
        )

    def append_sealed(
        self, topic_partition: TopicPartition, records: SealedRecords, now_ms: int
    ) -> ProducerBatch:
        """Append a batch of encoded records to the queue of its partition."""
        return self._append_whole(
            ProducerBatch.of_records(topic_partition, self._begin(), records, now_ms)
        )

    def _append_whole(self, batch: ProducerBatch) -> ProducerBatch:
        name = batch.topic_partition
        self._enqueue(self._queues.get(name) or self._new_queue(name), batch)
        self.used_bytes += batch.size_bytes
        return batch

    def _new_queue(self, topic_partition: TopicPartition) -> PartitionQueue:
        identity = Identity(self.producer_id, self.producer_epoch)
        queue = self._queues[topic_partition] = PartitionQueue(topic_partition, identity)
        return queue

    def _begin(self) -> int:
        """Return the number for a new batch. Raises the errors of `check_loop`."""
        self.check_loop()
        return self._batches_made * NUMBER_STEP

    def _enqueue(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        batch.check_loop = self.check_loop
        self._batches_made += 1
        self._unfinished[batch.number] = batch
        if queue.waiting:
            queue.waiting[-1].limit_bytes = 0  # later records go into a batch after this one
        queue.waiting.append(batch)
        self._active[batch.topic_partition] = queue

    # ---- taking batches ----

    @property
    def unfinished_batches(self) -> list[ProducerBatch]:
        """All batches without an outcome, oldest first."""
        return list(self._unfinished.values())

    @property
    def in_flight_count(self) -> int:
        return sum(len(queue.in_flight) for queue in self._queues.values())

    def ready(self, now_ms: int) -> Ready:
        """Return the partitions with a batch that is ready, and the latest time to ask again."""
        queues = []
        next_ms: int | None = None
        for queue in self._active.values():
            first = queue.waiting[0]
            due_ms = first.created_ms + self._config.delivery_timeout_ms
            # If a partition is held or has the maximum in flight, only a response can make it
            # ready, and that wakes the sender. Meanwhile, its batch can only expire.
            if not queue.is_held and len(queue.in_flight) < self._most_of(queue):
                leave_ms = max(queue.not_before_ms, self._leaves_at_ms(queue, first))
                if leave_ms <= now_ms:
                    queues.append(queue)
                else:
                    due_ms = min(due_ms, leave_ms)
            next_ms = due_ms if next_ms is None else min(next_ms, due_ms)
        return Ready(queues, next_ms)

    def _most_of(self, queue: PartitionQueue) -> int:
        """Return how many batches of the partition may be in flight at once."""
        # A leader accepts any first sequence from an unknown producer, so send the first batch
        # alone (see the invariants of `partition_queue`).
        is_first = self._config.enable_idempotence and not queue.is_known
        return 1 if is_first else self._most_in_flight

    def _leaves_at_ms(self, queue: PartitionQueue, first: ProducerBatch) -> int:
        full = len(queue.waiting) > 1 or first.size_bytes >= self._config.batch_size
        full = full or not first.limit_bytes  # no more records can join the batch
        # A full buffer is sent at once, because a long linger would block the caller.
        crowded = self.used_bytes + self._config.batch_size >= self._config.buffer_memory
        # A retry waits for its backoff (`not_before_ms`), not for more records.
        if full or first.attempts or self.flushing or crowded:
            return 0
        return first.created_ms + self._config.linger_ms

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """Take the partition's next batch, and move the partition to the back of the queue."""
        assert not self.needs_producer_id, "an idempotent batch needs a producer id"
        batch = queue.take(self._config.enable_idempotence)
        # Reinsert it at the end of the dict, so that the partitions of a broker take turns if they
        # do not all fit into a request.
        del self._active[queue.topic_partition]
        if queue.waiting:
            self._active[queue.topic_partition] = queue
        return batch

    # ---- outcomes ----

    def acknowledge(self, batch: ProducerBatch, base_offset: int, log_append_time_ms: int) -> None:
        queue = self._queues[batch.topic_partition]
        queue.acknowledge(batch)
        # The broker rejects gaps, so if a batch is stored, all batches with earlier sequences are
        # too.
        stored = queue.take_stored()
        self._resolve(queue)
        for older in stored:  # the response with its offset was lost
            self._complete(older, -1, -1)
        if not queue.waiting:
            self._active.pop(queue.topic_partition, None)
        self._complete(batch, base_offset, log_append_time_ms)

    def _complete(self, batch: ProducerBatch, base_offset: int, log_append_time_ms: int) -> None:
        self._release(batch)
        self.statistics.acknowledged_batches += 1
        self.statistics.acknowledged_bytes += batch.size_bytes
        self.statistics.acknowledged_records += batch.record_count
        batch.complete(base_offset, log_append_time_ms)

    def fail_attempt(self, batch: ProducerBatch, error: BarnabasError, retry_at_ms: int) -> None:
        """Take back a batch whose attempt failed. Retry it in order, or fail it for good (PR-5).

        A new producer id is needed if the broker's state is in doubt or the broker rejects our
        sequences. In this case, no batch is taken until all batches in flight are done and
        `identify` has been called.
        """
        queue = self._queues[batch.topic_partition]
        batch.last_failure = error
        if isinstance(error, MessageTooLarge) and batch.is_divisible:
            # `batch.size` exceeds the topic's max.message.bytes. Nothing was appended, so the parts
            # are sent with the sequences of the whole (KIP-126).
            self._split(queue, batch)
            return
        batch.in_doubt |= isinstance(error, Unreachable)
        if isinstance(error, OutOfOrderSequenceNumber):
            # A batch that moved up while in flight was rejected for its old sequence, not the new
            # one.
            batch.is_out_of_order = batch.sent_sequence == batch.base_sequence
            # A batch older than an acknowledged one is stored, even if the broker has forgotten it.
            if batch.is_out_of_order and batch.number < queue.last_acknowledged:
                self.acknowledge(batch, -1, -1)
                return
        if batch.attempts <= self._config.retries and self._may_pass(batch, queue, error):
            # Any other error may occur after the append, such as NOT_ENOUGH_REPLICAS_AFTER_APPEND,
            # or REQUEST_TIMED_OUT while replicas were fetching the batch (PR-4).
            batch.in_doubt |= not isinstance(error, SEQUENCE_ERRORS)
            queue.put_back(batch, retry_at_ms)
            self.statistics.retries += 1
            self._active[batch.topic_partition] = queue
            return
        if batch.base_sequence >= 0 and batch.in_doubt:
            # Responses to later batches will show whether this one is stored (KIP-360).
            queue.give_up_in_flight(batch)
        else:
            queue.refuse(batch)
        self._resolve(queue)
        self._fail(batch, error)

    def _split(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Split a batch that is too large for its topic, and retry the parts (KIP-126)."""
        parts = batch.split()
        self._release(batch)
        for part in parts:
            self._unfinished[part.number] = part
            self.used_bytes += part.size_bytes
        queue.replace(batch, parts)
        self.statistics.retries += 1
        self._active[batch.topic_partition] = queue

    def _may_pass(self, batch: ProducerBatch, queue: PartitionQueue, error: BarnabasError) -> bool:
        """Return whether another attempt may be successful."""
        if isinstance(error, Unreachable):
            return True
        if batch.base_sequence >= 0 and isinstance(error, SEQUENCE_ERRORS):
            # This error is expected for a batch behind one that was rejected or must be retried. It
            # is also expected if the broker remembers only younger batches. Otherwise, its state
            # and ours differ, and a new identity is needed. The error ends a transaction, which
            # cannot change its identity halfway.
            if self._is_out_of_step(batch, queue, error):
                self._lose_sequences(queue)
                return not self.is_transactional
            return True
        return isinstance(error, KafkaError) and error.retriable

    def _is_out_of_step(
        self, batch: ProducerBatch, queue: PartitionQueue, error: BarnabasError
    ) -> bool:
        if isinstance(error, OutOfOrderSequenceNumber) and not self.is_transactional:
            # If another batch in flight is acknowledged, this one must be stored.
            return queue.is_out_of_step(batch)
        # A transaction does not wait for such proof, because its abort settles every doubt.
        moved_up = batch.sent_sequence != batch.base_sequence
        return not moved_up and queue.is_first_unacknowledged(batch)

    def _resolve(self, queue: PartitionQueue) -> None:
        """Drop the sequences if a batch was given up in doubt and no other batch can resolve it.

        In a transaction, such a batch always ends the transaction.
        """
        if queue.is_unresolvable or (queue.unresolved >= 0 and self.is_transactional):
            self._lose_sequences(queue)

    def _lose_sequences(self, queue: PartitionQueue) -> None:
        queue.is_lost = self.needs_producer_id = True

    def identify(self, producer_id: int, producer_epoch: int) -> None:
        """Adopt a new identity. There must be no batch in flight.

        Sequences that were lost restart at 0. For a transactional producer, all sequences restart.
        """
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.needs_producer_id = False
        for queue in self._queues.values():
            if queue.is_lost or queue.identity == NO_IDENTITY or self.is_transactional:
                queue.restart(Identity(producer_id, producer_epoch))

    def expire(self, now_ms: int) -> list[ProducerBatch]:
        """Fail the batches that have waited for `delivery.timeout.ms`, and return them."""
        expired = []
        limit_ms = self._config.delivery_timeout_ms
        missing = "producer id yet" if self.needs_producer_id else "leader, no broker"
        # Only waiting batches expire. A batch in flight is handed back with its response, or after
        # request.timeout.ms; by then, it is too old to be retried.
        for queue in list(self._active.values()):
            while queue.waiting and queue.waiting[0].created_ms + limit_ms <= now_ms:
                expired.append(queue.waiting[0])
                self._drop(queue.waiting[0], _timed_out(queue.waiting[0], limit_ms, missing))
        return expired

    def fail_waiting(self, error: BarnabasError) -> int:
        """Fail every batch that is not in flight, and return the number of records."""
        return sum(self.fail_queue(queue, error) for queue in list(self._active.values()))

    def fail_queue(self, queue: PartitionQueue, error: BarnabasError) -> int:
        """Fail the batches of a partition that are not in flight, and return the number of
        records."""
        count = 0
        while queue.waiting:
            count += queue.waiting[0].record_count
            self._drop(queue.waiting[0], error)
        return count

    def fail_all(self, error: BarnabasError) -> None:
        """Fail every batch, even those in flight. Nothing is sent or received after this."""
        for queue in self._queues.values():
            queue.waiting.clear()
            queue.in_flight.clear()
        self._active.clear()
        for batch in self.unfinished_batches:
            self._fail(batch, error)

    def _drop(self, batch: ProducerBatch, error: BarnabasError) -> None:
        """Fail the first waiting batch of its partition."""
        queue = self._queues[batch.topic_partition]
        queue.waiting.popleft()
        if batch.base_sequence >= 0:  # it was sent once and may be in the log
            queue.give_up(batch)
            self._resolve(queue)
        if not queue.waiting:
            del self._active[batch.topic_partition]
        self._fail(batch, error)

    def _fail(self, batch: ProducerBatch, error: BarnabasError) -> None:
        self._release(batch)
        self.statistics.failed_records += batch.record_count
        batch.fail(error)

    def _release(self, batch: ProducerBatch) -> None:
        del self._unfinished[batch.number]
        self.used_bytes -= batch.size_bytes


def _timed_out(batch: ProducerBatch, limit_ms: int, missing: str) -> DeliveryTimedOut:
    return DeliveryTimedOut(
        f"{counted(batch.record_count, 'record')} for {batch.topic_partition} not acknowledged "
        f"within {limit_ms} ms (delivery.timeout.ms): {_attempts(batch, missing)}"
    )


def _attempts(batch: ProducerBatch, missing: str) -> str:
    if not batch.attempts:
        return f"never sent (no {missing})"
    sent = f"sent {counted(batch.attempts, 'time')}"
    if isinstance(batch.last_failure, KafkaError):
        return f"{sent}, last rejected with {reason(batch.last_failure)}"
    return f"{sent}, no response to the last attempt ({batch.last_failure})"


def _ratio(whole: float, parts: int) -> float:
    return whole / parts if parts else 0.0
