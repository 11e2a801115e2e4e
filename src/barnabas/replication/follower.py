"""Decides where a partition's follower fetches from, and how it handles responses (RE-10).

The follower's log is aligned with the leader's log by comparing epochs, never by the high watermark
(KIP-101, 279, 320, 595). Each fetch contains the epoch of the follower's last record. If the
leader's log differs, the leader returns a diverging epoch, and the follower truncates its own log:

    leader      epochs 0 [0..3) 2 [3..9)          follower    epochs 0 [0..3) 1 [3..5)
    fetch from 5, last epoch 1     ->     diverging: epoch 0 ends at 3
    truncate to 3, fetch from 3, last epoch 0     ->     records from 3 on

Invariants: A response is used only if the leader epoch and the log end are the same as when the
request was sent. In each epoch, nothing is appended before the leader has found the follower's log
end in its own log. The offset of a fetch acknowledges everything below it.

The caller must either carry out a step before it awaits anything else, or drop the step.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from barnabas.errors import OffsetOutOfRange
from barnabas.replication.partition import NO_EPOCH, Advance, Partition

UNKNOWN_OFFSET = -1


class EpochEnd(NamedTuple):
    """A leader epoch and the offset at which it ends."""

    epoch: int
    end_offset: int


class OwnLog(Protocol):
    """The information about the follower's log that is needed for alignment.

    Epochs increase with the offsets.
    """

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def latest_epoch(self) -> int: ...

    def epoch_end_offset(self, epoch: int, /) -> tuple[int, int]:
        """Return the largest epoch not above this one and its end, or (-1, -1) if there is none."""
        ...


class FetchFrom(NamedTuple):
    """The position at which a fetch starts."""

    offset: int
    last_fetched_epoch: int
    leader_epoch: int
    log_start_offset: int


class Fetched(NamedTuple):
    """A response from the leader, without its records."""

    error_code: int
    high_watermark: int
    log_start_offset: int
    diverging: EpochEnd | None
    size_bytes: int


class Append(NamedTuple):
    """This step appends the records, if there are any, and then calls `on_appended`."""


class Truncate(NamedTuple):
    """This step removes all records and leader epochs that start at or after this offset.

    It may be needed even at the log end, because an epoch without records may start there.
    """

    offset: int
    lost_committed: int = 0
    """The number of removed offsets below the high watermark (after an unclean election)."""


class StartAt(NamedTuple):
    """This step removes all records and epochs, and makes the log start at this offset."""

    offset: int
    lost_committed: int = 0


class FetchBounds(NamedTuple):
    """This step asks the leader for its earliest and latest offset, and calls `on_bounds`."""


class Wait(NamedTuple):
    """This step fetches again after the delay."""

    ms: int


class Ignore(NamedTuple):
    """This step drops the response, because the epoch or the log has changed since the request."""


Step = Append | Truncate | StartAt | FetchBounds | Wait | Ignore
"""All types of steps.

Distinguish them only by their type, because `Append()` equals `Ignore()` and both are falsy.
"""


class Aligned(NamedTuple):
    """The offset at which to truncate. If it is not final, the leader must be asked again."""

    offset: int
    is_final: bool


def aligned_offset(log: OwnLog, leaders: EpochEnd, high_watermark: int) -> Aligned:
    """Return the offset up to which both logs can be equal, given an epoch of the leader and its
    end.

    `leaders` is the diverging epoch in the response to a fetch. If inter.broker.protocol.version is
    below 2.7, it is the response to OffsetForLeaderEpoch for the latest epoch of this log.
    """
    end = log.log_end_offset
    if leaders.end_offset == UNKNOWN_OFFSET:
        return Aligned(min(high_watermark, end), is_final=True)  # the leader has no leader epochs
    if leaders.epoch == NO_EPOCH:
        # the leader does not send leader epochs
        return Aligned(min(leaders.end_offset, end), is_final=True)
    # Find the largest epoch of this log that is not greater than the leader's. The follower may
    # lack epochs that the leader has, and may have epochs that the leader never had.
    epoch, own_end = log.epoch_end_offset(leaders.epoch)
    # All epochs of this log are later than the leader's epoch, so nothing above its end can be
    # equal.
    if own_end == UNKNOWN_OFFSET:
        return Aligned(min(leaders.end_offset, end), is_final=True)
    if epoch != leaders.epoch:
        # The leader has an epoch that is missing from this log. Only the records before it can be
        # equal, which the leader has to confirm (KIP-279).
        return Aligned(min(own_end, end), is_final=False)
    return Aligned(min(own_end, leaders.end_offset, end), is_final=True)


class Follower:
    """A partition that this broker follows."""

    __slots__ = ("_backoff_ms", "_counted_epoch", "_diverged", "_log", "_requested", "partition")

    def __init__(self, partition: Partition, log: OwnLog, *, backoff_ms: int = 1_000) -> None:
        self.partition = partition
        self._log = log
        self._backoff_ms = backoff_ms
        self._counted_epoch = NO_EPOCH
        self._diverged: FetchFrom | None = None
        self._requested: FetchFrom | None = None

    def on_log_moved(self, log: OwnLog) -> None:
        """Use this log object from now on. It has the same content as the previous one."""
        self._log = log

    def fetch_from(self) -> FetchFrom:
        """Return the next fetch. All records below its offset must already have been written."""
        log, partition = self._log, self.partition
        end = log.log_end_offset
        if end < partition.high_watermark:
            partition.on_truncated(end)  # truncating within a batch removes the whole batch
        epoch = log.latest_epoch
        if epoch == NO_EPOCH:
            # Keep the committed records. If their format has no leader epochs, the logs cannot be
            # aligned.
            end = max(log.log_start_offset, min(end, partition.high_watermark))
        return FetchFrom(end, epoch, partition.leader_epoch, log.log_start_offset)

    def on_answer(self, sent: FetchFrom, got: Fetched) -> Step:
        """Return the step that follows from the leader's response."""
        self._counted_epoch = NO_EPOCH
        # The role, the epoch or the log has changed since the request was sent. For this reason,
        # Kafka's fetcher compares the epoch and the offset as well.
        if not self._is_current(sent):
            return Ignore()
        # Either the leader's log now starts later, because of retention, or it ends earlier, after
        # an unclean election. Ask for its bounds to find out.
        if got.error_code == OffsetOutOfRange.code:
            self._requested = sent
            return FetchBounds()
        if got.error_code:
            return Wait(self._backoff_ms)
        if got.diverging is not None:
            return self._align(sent, got.diverging)
        # This is possible only if the records have no epochs. `fetch_from` then fetches from the
        # high watermark, and all records above it are removed.
        if self._log.log_end_offset > sent.offset:
            return self._cut(sent.offset)
        self._counted_epoch = sent.leader_epoch
        return Append()

    def on_appended(self, got: Fetched) -> list[Advance]:
        """Record that the log contains the records of an `Append` step, if it had any (RE-6).

        The shell then raises the log start offset to the leader's, if that is below the high
        watermark.
        """
        partition = self.partition
        if partition.is_leader or self._counted_epoch != partition.leader_epoch:
            return []  # the role changed during the write
        return partition.on_copied(self._log.log_end_offset, got.high_watermark)

    def on_bounds(self, earliest: int, latest: int) -> Step:
        """Handle the leader's bounds, requested by `FetchBounds`, and return the next step."""
        requested, self._requested = self._requested, None
        if requested is None or not self._is_current(requested):
            return Ignore()
        end = self._log.log_end_offset
        # The leader's log is shorter after an unclean election. As in Kafka, truncate this log to
        # the same end.
        if latest < end:
            return self._cut(latest)
        if earliest > end:
            # The leader has already deleted the records that come next.
            self.partition.on_started_at(earliest)
            return StartAt(earliest)
        return Wait(self._backoff_ms)  # the offset is in range again

    def _is_current(self, sent: FetchFrom) -> bool:
        if self.partition.is_leader or sent.leader_epoch != self.partition.leader_epoch:
            return False
        now = self.fetch_from()
        return (sent.offset, sent.last_fetched_epoch) == (now.offset, now.last_fetched_epoch)

    def _align(self, sent: FetchFrom, leaders: EpochEnd) -> Step:
        if sent == self._diverged:
            # Nothing was removed by the truncation, so wait before asking the leader again.
            self._diverged = None
            return Wait(self._backoff_ms)
        self._diverged = sent
        return self._cut(aligned_offset(self._log, leaders, self.partition.high_watermark).offset)

    def _cut(self, offset: int) -> Truncate | StartAt:
        partition = self.partition
        lost = max(0, partition.high_watermark - offset)
        # No record in this log is valid. As in Kafka, remove all of them and start at that offset.
        if offset < self._log.log_start_offset:
            partition.on_started_at(offset)
            return StartAt(offset, lost)
        partition.on_truncated(offset)
        return Truncate(offset, lost)
