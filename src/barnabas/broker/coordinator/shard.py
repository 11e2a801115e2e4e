"""Runs the machine for one partition of an internal topic, on behalf of either coordinator.

    decide -> append -> apply -> await the high watermark -> reply, send markers, log

A decision is appended before it is applied, so if the append fails, nothing has changed. If this
broker loses the leadership or the disk, the whole shard is dropped. All waiting requests are then
answered with NOT_COORDINATOR, and the next leader reads the partition from the beginning.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from barnabas.broker.coordinator.pending_reply import (
    Fail,
    PendingReply,
    ShardOutcome,
    as_coordinator,
)
from barnabas.coordinator.decision import (
    ALL_REPLICATED,
    NO_PRODUCER_ID,
    Decision,
    Markers,
    Now,
    StateRecord,
    TransactionalBatch,
)
from barnabas.coordinator.records import GroupMetadataKey, OffsetCommitKey, encode_record
from barnabas.errors import KafkaError, KafkaStorageError, NotCoordinator
from barnabas.records.record import BatchBuilder

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.coordinator.state_replica import ShardClock, StateReplica
    from barnabas.events import EventLog

_log = logging.getLogger(__name__)


class CoordinatorMachine(Protocol):
    """The interface of a coordinator's machine, implemented by `Groups` and `Transactions`."""

    def apply(
        self,
        record: StateRecord,
        offset: int,
        producer_id: int = NO_PRODUCER_ID,
        high_watermark: int = ALL_REPLICATED,
    ) -> None: ...

    def end_transaction(self, producer_id: int, is_commit: bool) -> None: ...

    def on_loaded(self, now: Now) -> Decision: ...

    def deadline_ms(self) -> int | None: ...

    def expire(self, now: Now, *, may_forget: bool = True) -> list[Decision]: ...


_TOMBSTONES_AT_ONCE = 1000  # tombstones per batch, if a group has too many offsets for one batch

M = TypeVar("M", bound=CoordinatorMachine)


Ask = Callable[[M, int, Now], Decision]
"""Calls the machine with the request's ticket and the current time."""

Failed = Callable[["StateReplica", OSError], None]


class ShardContext(NamedTuple):
    """The parts of a broker that a coordinator's shards use."""

    clock: ShardClock
    write_soon: Callable[[], None]
    """Schedules a write of the records appended so far, before the event loop waits again."""
    pool: Executor | None
    """The threads that read partitions while they are being loaded. None selects the event loop's
    default executor.
    """
    codec: int
    """The compression codec for the records that shards write."""
    timeout_ms: int
    """The longest time that a response may wait for the high watermark."""
    load_bytes: int
    """The number of bytes per read while a partition is being loaded."""
    send_markers: Callable[[Shard[Any], Markers], None]
    events: EventLog


class Shard(Generic[M]):
    """A machine that has been loaded, and the requests that are waiting for its responses."""

    __slots__ = (
        "_context",
        "_failed",
        "_next_ticket",
        "_owed",
        "_timer",
        "_timer_ms",
        "_visible_from",
        "epoch",
        "is_dropped",
        "machine",
        "partition",
        "replica",
    )

    def __init__(
        self, replica: StateReplica, machine: M, context: ShardContext, failed: Failed
    ) -> None:
        """`failed` is called after an append has failed."""
        self.partition = replica.topic_partition.partition
        self.epoch = replica.partition.leader_epoch
        """The coordinator epoch, which is the leader epoch in which the partition was loaded."""
        self.machine = machine
        self.replica = replica
        self.is_dropped = False
        self._context = context
        self._failed = failed
        self._next_ticket = 0
        self._owed: dict[int, PendingReply] = {}
        self._visible_from = replica.log.log_end_offset  # everything applied is below this offset
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0

    def ask(self, decide: Ask[M], fail: Fail) -> ShardOutcome:
        """Ask the machine for a decision. `fail` converts an error to a response."""
        ticket = self._next_ticket
        self._next_ticket += 1
        reply = self._owed[ticket] = PendingReply(self.replica, fail, self._context.timeout_ms)
        if self.is_dropped:
            self._refuse_all(
                NotCoordinator("the partition of this coordinator has moved to another broker")
            )
        else:
            now = self.now()
            decision = decide(self.machine, ticket, now)
            failure = self._carry_out(decision, now)
            if decision.records:
                self._context.write_soon()  # the response may not wait for these records
            if failure is not None:
                self._failed(self.replica, failure)
        return reply.at_once() or reply

    def carry_out(self, decision: Decision) -> None:
        """Apply a decision that the machine made without a request from a client."""
        if not self.is_dropped:
            failure = self._carry_out(decision, self.now())
            self._context.write_soon()
            if failure is not None:
                self._failed(self.replica, failure)

    def begin(self) -> None:
        """Start the machine's deadlines once everything has been replayed."""
        self.carry_out(self.machine.on_loaded(self.now()))

    def now(self) -> Now:
        """Return the current time for the machine. It determines when the machine's records
        expire.
        """
        clock = self._context.clock
        return Now(clock.monotonic_ms(), clock.latest_wall_ms())

    def drop(self) -> None:
        """Fail all requests, because this broker is no longer the coordinator of this partition."""
        self.is_dropped = True
        if self._timer is not None:
            self._timer.cancel()
        self._refuse_all(
            NotCoordinator("the partition of this coordinator has moved to another broker")
        )

    def _refuse_all(self, error: KafkaError) -> None:
        owed, self._owed = self._owed, {}
        for reply in owed.values():
            reply.refuse(error)

    def _carry_out(self, decision: Decision, now: Now) -> OSError | None:
        """Append and apply the decision, and answer its requests. Return the error if the disk
        failed.
        """
        if decision.records:
            try:
                self._append(decision, now.wall_ms)
            # There are too few in-sync replicas, or the batch is too large. The machine has not
            # changed, so there is nothing to undo.
            except KafkaError as error:
                self._refuse(decision, error)
                self._set_timer(now.monotonic_ms)
                return None
            except OSError as error:
                self._refuse(decision, KafkaStorageError(str(error)))
                self._set_timer(now.monotonic_ms)
                return error
        for ticket, message, after in decision.replies:
            reply = self._owed.pop(ticket, None)
            if reply is not None:
                reply.give(message, self._visible_from if after is None else after)
        if decision.markers or decision.events:
            self._when_committed(decision)
        self._set_timer(now.monotonic_ms)
        return None

    def _refuse(self, decision: Decision, error: KafkaError) -> None:
        """Fail the requests that the decision would have answered, because nothing was appended."""
        _log.warning("%s: %s", self.replica.topic_partition, error)
        is_of_offsets = isinstance(decision.records[0].key, OffsetCommitKey)
        refusal = as_coordinator(error, is_of_offsets=is_of_offsets)
        for answer in decision.replies:
            reply = self._owed.pop(answer.ticket, None)
            if reply is not None:
                reply.refuse(refusal)

    def _append(self, decision: Decision, wall_ms: int) -> None:
        """Append the records as a single batch and apply them. A very large set of tombstones is
        split.
        """
        # Records that have been acknowledged must be on min.insync.replicas replicas (acks=all).
        if not _only_forgets(decision):
            self.replica.partition.check_acks_all()
        records = decision.records
        at_once = len(records)
        # The set can be split safely, because tombstones are independent of each other. If a batch
        # fails, its tombstones will be written again later.
        if at_once > _TOMBSTONES_AT_ONCE and all(value is None for _, value in records):
            at_once = _TOMBSTONES_AT_ONCE
        for first in range(0, len(records), at_once):
            self._append_batch(records[first : first + at_once], decision.batch, wall_ms)

    def _append_batch(
        self, records: Sequence[StateRecord], producer: TransactionalBatch | None, wall_ms: int
    ) -> None:
        if producer is None:
            builder, producer_id = BatchBuilder(self._context.codec), NO_PRODUCER_ID
        else:
            producer_id = producer.producer_id
            # Nothing checks these sequence numbers, but Kafka's cleaner rejects batches that have
            # none.
            builder = BatchBuilder(
                self._context.codec, producer_id, producer.producer_epoch, 0, is_transactional=True
            )
        for key, value in records:
            builder.append(wall_ms, *encode_record(key, value))
        result = self.replica.append_own(memoryview(bytearray(builder.build())), wall_ms)
        self._visible_from = result.last_offset + 1
        high_watermark = self.replica.high_watermark
        # Apply the records in the same step as the append, because the memory and the log must
        # always agree.
        for offset, record in enumerate(records, result.base_offset):
            self.machine.apply(record, offset, producer_id, high_watermark)

    def _when_committed(self, decision: Decision) -> None:
        if self._visible_from <= self.replica.high_watermark:
            self._on_committed(decision)
        else:
            self.replica.wait_for(self._visible_from).add_done_callback(
                lambda future: None if future.exception() else self._on_committed(decision)
            )

    def _on_committed(self, decision: Decision) -> None:
        for event in decision.events:
            self._context.events.add(event, _log)
        if not self.is_dropped:
            for markers in decision.markers:
                self._context.send_markers(self, markers)

    # --- deadlines -------------------------------------------------------------------------------

    def _set_timer(self, now_ms: int) -> None:
        """Set the timer to fire no later than the next deadline of the machine."""
        deadline_ms = self.machine.deadline_ms()
        if deadline_ms is None or self.is_dropped:
            return
        if self._timer is not None:
            # The current timer fires early enough, and will be set again then.
            if self._timer_ms <= deadline_ms:
                return
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_s = max(0, deadline_ms - now_ms) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now, trusted_ms = self.now(), self._context.clock.trusted_wall_ms()
        for decision in self.machine.expire(now, may_forget=trusted_ms is not None):
            self.carry_out(decision)
        self._set_timer(now.monotonic_ms)


def _only_forgets(decision: Decision) -> bool:
    """Return whether the decision only removes offsets and answers no request.

    As in Kafka, such a decision is allowed even if there are too few in-sync replicas. Otherwise, a
    deleted topic's offsets might never be removed. Losing a tombstone does no harm.
    """
    return not decision.replies and all(
        value is None and isinstance(key, OffsetCommitKey | GroupMetadataKey)
        for key, value in decision.records
    )
