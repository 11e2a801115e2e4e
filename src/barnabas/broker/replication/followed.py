"""Runs the state machine of a followed partition on its log.

This code enforces the order "append, write, fetch". The next fetch acknowledges all records below
its offset, so the machine is not notified of records until they have been written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from barnabas.counted import counted
from barnabas.events import Event
from barnabas.replication.follower import (
    Append,
    EpochEnd,
    Fetched,
    Follower,
    StartAt,
    Step,
    Truncate,
)
from barnabas.storage.directory import DirectoryError
from barnabas.types import NO_TOPIC_ID

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.broker.replication.fetcher_parts import FetcherParts
    from barnabas.broker.runtime.steps import Steps
    from barnabas.events import EventLog
    from barnabas.protocol.messages.fetch import PartitionData
    from barnabas.replication.follower import FetchFrom
    from barnabas.storage.store import LogStore

_log = logging.getLogger(__name__)

_NO_EPOCH = -1


class Lag(NamedTuple):
    """How far a follower lags, as computed from its leader's last response."""

    records: int
    """The number of records below the leader's high watermark that this replica does not have."""
    ms: int
    """How long the replica has been missing records, in milliseconds."""


class Followed:
    """A partition that is replicated by a fetcher, from one LeaderAndIsr until the next."""

    __slots__ = (
        "_behind_since_ms",
        "_clock",
        "_follower",
        "_has_been_level",
        "_replicas",
        "_throttles",
        "lag_records",
        "replica",
        "topic_id",
    )

    def __init__(
        self,
        replica: Replica,
        parts: FetcherParts,
        new_follower: Callable[..., Follower] = Follower,
    ) -> None:
        """`new_follower` creates the machine. The simulator uses it to create mutants."""
        self.replica = replica
        self.topic_id = replica.log.topic_id or NO_TOPIC_ID
        self.lag_records = 0
        self._clock = parts.replicas.clock
        self._behind_since_ms = self._clock.monotonic_ms()
        self._has_been_level = parts.view.broker_id in replica.partition.isr  # at the last response
        self._replicas = parts.replicas
        self._throttles = parts.throttles
        self._follower = new_follower(
            replica.partition,
            replica.log,
            backoff_ms=parts.config.int("replica.fetch.backoff.ms"),
        )

    def fetch_from(self) -> FetchFrom:
        return self._follower.fetch_from()

    def take(self, sent: FetchFrom, data: PartitionData, now_ms: int) -> Step:
        """Carry out the machine's decision about a response, and return the step that was taken.

        The fetcher must handle `Wait` and `FetchBounds` itself. Raises CorruptData or KafkaError if
        the records cannot be appended, and OSError if the log has failed.
        """
        records = data.records if isinstance(data.records, memoryview) else memoryview(b"")
        end = data.diverging_epoch
        diverging = None if end.epoch == _NO_EPOCH else EpochEnd(end.epoch, end.end_offset)
        got = Fetched(
            data.error_code, data.high_watermark, data.log_start_offset, diverging, len(records)
        )
        return self.on_answer(sent, got, records, now_ms)

    def on_answer(self, sent: FetchFrom, got: Fetched, records: memoryview, now_ms: int) -> Step:
        """Apply a response that has already been decoded, and its records, in the same way as
        `take`.
        """
        step = self._follower.on_answer(sent, got)
        # The records are not used in any other step.
        if type(step) is Append:
            before = self.replica.log.log_end_offset
            # An empty response matters too, because it can raise the high watermark (RE-6).
            if records:
                self._append(records, got.high_watermark, now_ms)
            self.replica.on_copied(got.size_bytes, before, self._follower.on_appended(got))
            self._level(got, now_ms)
        else:
            self._cut(step)
        return step

    def bounds(self, earliest: int, latest: int) -> Step:
        """Align the log with the bounds of the leader's log, either by restarting at the leader's
        log start or by truncating.

        Raises OSError.
        """
        step = self._follower.on_bounds(earliest, latest)
        self._cut(step)
        return step

    def on_log_moved(self) -> None:
        """Switch to the copy of the log in another directory."""
        self._follower.on_log_moved(self.replica.log)

    def lag(self, now_ms: int) -> Lag:
        return Lag(self.lag_records, now_ms - self._behind_since_ms if self.lag_records else 0)

    def throttled_ms(self, now_ms: int) -> int:
        """Return for how long (in ms) the partition must be skipped.

        It is skipped if it lags and its replication quota has been used up (RE-13).
        """
        # As in Kafka, a replica is throttled only while it lags, because throttling must not push
        # it out of the ISR.
        if self._has_been_level:
            return 0
        throttle = self._throttles.of_follower(self.replica)
        return 0 if throttle is None else throttle.wait_ms(now_ms)

    def _append(self, records: memoryview, high_watermark: int, now_ms: int) -> None:
        replica = self.replica
        replica.log.append_as_follower(records, self._clock.wall_ms(), high_watermark)
        throttle = self._throttles.of_follower(replica)
        if throttle is not None:
            throttle.record(len(records), now_ms)
        replica.write_staged()
        if replica.flush is None and replica.log.due_flush(now_ms):
            self._replicas.start_flush(replica)

    def _level(self, got: Fetched, now_ms: int) -> None:
        """Adopt the leader's log start offset, and update the lag."""
        log = self.replica.log
        # Never go beyond this replica's high watermark, because uncommitted records must not be
        # deleted (KIP-107).
        begin = min(got.log_start_offset, self.replica.high_watermark)
        if begin > log.log_start_offset:
            log.raise_log_start(begin)
            self.replica.log_start_moved()
        lag_records = got.high_watermark - log.log_end_offset
        self._has_been_level = lag_records <= 0
        if lag_records > 0:
            if not self.lag_records:
                self._behind_since_ms = now_ms
            self.lag_records = lag_records
        else:
            self.lag_records = 0

    @property
    def is_cut(self) -> bool:
        """Whether the log has been truncated but the truncation has not reached the disk (see
        `settling`).
        """
        return self.replica.log.unsettled is not None

    def _cut(self, step: Step) -> None:
        replica = self.replica
        if type(step) is Truncate or type(step) is StartAt:
            replica.log.segments[-1].need_descriptors()
        if type(step) is Truncate:
            _say_lost(self._replicas.events, replica, step)
            # Truncate through the store. If the recovery point moves back, it must be on disk
            # before anything else is appended. The fetcher syncs it together for all partitions of
            # a response.
            self._replicas.store.truncations.begin(replica.topic_partition, step.offset)
            if step.lost_committed:
                replica.wake_watchers()  # consumers have seen records that no longer exist
        elif type(step) is StartAt:
            _say_lost(self._replicas.events, replica, step)
            self._replicas.store.truncations.begin_start_at(replica.topic_partition, step.offset)
            replica.log_start_moved()


def settling(store: LogStore, cut: Sequence[Followed]) -> Steps[None]:
    """Sync the truncations of these logs, and wait for the disk only once.

    If no file descriptors are free, some truncations are not synced until their logs are written to
    or this function is called again.
    """
    replicas = {each.replica.topic_partition: each.replica for each in cut}
    for name, replica in replicas.items():
        try:
            for _ in store.truncations.learn(name):
                yield None
        except OSError as error:
            replica.fail(error)
    names = list(replicas)
    try:
        failed = yield partial(store.truncations.settle, names)
    except DirectoryError as error:
        for name, replica in replicas.items():
            if name in store.logs and store.directory_of(name) == error.directory:
                replica.fail(error)
        return
    for log, reason in failed:
        name = log.topic_partition
        if store.logs.get(name) is log:
            replicas[name].fail(reason)
    for name in names:
        unsettled = store.logs[name].unsettled if name in store.logs else None
        if unsettled is not None and unsettled.is_settled:
            store.logs[name].settle()


def _say_lost(events: EventLog, replica: Replica, step: Truncate | StartAt) -> None:
    """Report which of the follower's records are removed, and why."""
    name, epoch = replica.topic_partition, replica.partition.leader_epoch
    if step.lost_committed:
        lost = counted(step.lost_committed, "record")
        cause = f"its leader in epoch {epoch}, elected uncleanly, does not have the log from there"
        text = (
            f"Truncating {name} to offset {step.offset}, which removes {lost} that had been "
            f"committed: {cause}"
        )
    elif type(step) is Truncate and step.offset < replica.log.log_end_offset:
        cause = f"its leader in epoch {epoch} has a different log from there"
        text = (
            f"Truncating {name} to offset {step.offset} from {replica.log.log_end_offset}: {cause}"
        )
    else:
        return
    events.add(
        Event(
            "truncation",
            text,
            cause,
            name.topic,
            name.partition,
            broker=replica.partition.broker_id,
            # Records that were never committed cannot have been read by any consumer.
            is_harmless=not step.lost_committed,
            is_warning=bool(step.lost_committed),
        ),
        _log,
    )
