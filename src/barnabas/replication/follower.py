"""Decides where the follower of a partition fetches from, and how it uses responses (RE-10).

The follower's log is aligned with the leader's by epochs, never by the high watermark (KIP-101,
279, 320, 595). Each fetch contains the epoch of the follower's last record. A leader whose log
differs returns a diverging epoch, and the follower truncates its own log:

    leader      epochs 0 [0..3) 2 [3..9)          follower    epochs 0 [0..3) 1 [3..5)
    fetch from 5, last epoch 1     ->     diverging: epoch 0 ends at 3
    truncate to 3, fetch from 3, last epoch 0     ->     records from 3 on

Invariants: a response is used only in the leader epoch and at the log end of its request; nothing
is appended in an epoch before the leader has found the follower's log end in its own log; the
offset of a fetch acknowledges everything below it. A step must be carried out before anything else
is awaited, or be dropped.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from barnabas.errors import OffsetOutOfRange
from barnabas.replication.partition import NO_EPOCH, Advance, Partition

UNKNOWN_OFFSET = -1


class EpochEnd(NamedTuple):
    """A leader epoch and its end offset."""

    epoch: int
    end_offset: int


class OwnLog(Protocol):
    """The part of the follower's log that alignment reads. Epochs increase with the offsets."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def latest_epoch(self) -> int: ...

    def epoch_end_offset(self, epoch: int, /) -> tuple[int, int]:
        """Return the largest epoch up to this one and its end; (-1, -1) if there is none."""
        ...


class FetchFrom(NamedTuple):
    """The position from which a fetch reads."""

    offset: int
    last_fetched_epoch: int
    leader_epoch: int
    log_start_offset: int


class Fetched(NamedTuple):
    """A leader's response without the records."""

    error_code: int
    high_watermark: int
    log_start_offset: int
    diverging: EpochEnd | None
    size_bytes: int


class Append(NamedTuple):
    """A step: append the records, if there are any, and call `on_appended`."""


class Truncate(NamedTuple):
    """A step: remove all records and leader epochs from this offset on.

    This matters even at the log end, where an epoch without records may start.
    """

    offset: int
    lost_committed: int = 0
    """The number of removed offsets below the high watermark (after an unclean election)."""


class StartAt(NamedTuple):
    """A step: remove all records and epochs, and start the log at this offset."""

    offset: int
    lost_committed: int = 0


class FetchBounds(NamedTuple):
    """A step: ask the leader for its earliest and latest offsets, and call `on_bounds`."""


class Wait(NamedTuple):
    """A step: fetch again after this delay."""

    ms: int


class Ignore(NamedTuple):
    """A step: drop the response, because the epoch or the log has changed since the request."""


Step = Append | Truncate | StartAt | FetchBounds | Wait | Ignore
"""The steps. Distinguish them only by type: `Append()` equals `Ignore()`, and both are falsy."""


class Aligned(NamedTuple):
    """The offset to truncate to. Unless it is final, query the leader again."""

    offset: int
    is_final: bool


def aligned_offset(log: OwnLog, leaders: EpochEnd, high_watermark: int) -> Aligned:
    """Return the offset up to which the logs can be equal, given a leader's epoch and its end.

    `leaders` is the diverging epoch of a fetch, or the response to OffsetForLeaderEpoch for the
    latest epoch of this log, which followers below inter.broker.protocol.version 2.7 use.
    """
    end = log.log_end_offset
    if leaders.end_offset == UNKNOWN_OFFSET:
        return Aligned(min(high_watermark, end), is_final=True)  # the leader has no epochs
    if leaders.epoch == NO_EPOCH:
        # or the leader does not send them
        return Aligned(min(leaders.end_offset, end), is_final=True)
    # The largest epoch of this log that is not above the leader's. A follower may have skipped
    # epochs that the leader has, or may have epochs that the leader never had.
    epoch, own_end = log.epoch_end_offset(leaders.epoch)
    # Every epoch of this log is later than the leader's, so nothing above the leader's end can be
    # equal.
    if own_end == UNKNOWN_OFFSET:
        return Aligned(min(leaders.end_offset, end), is_final=True)
    if epoch != leaders.epoch:
        # The leader has an epoch that this log lacks. Only records before it can be equal, and the
        # leader has to confirm that (KIP-279).
        return Aligned(min(own_end, end), is_final=False)
    return Aligned(min(own_end, leaders.end_offset, end), is_final=True)


class Follower:
    """One partition that this broker follows."""

    __slots__ = ("_backoff_ms", "_counted_epoch", "_diverged", "_log", "_requested", "partition")

    def __init__(self, partition: Partition, log: OwnLog, *, backoff_ms: int = 1_000) -> None:
        self.partition = partition
        self._log = log
        self._backoff_ms = backoff_ms
        self._counted_epoch = NO_EPOCH
        self._diverged: FetchFrom | None = None
        self._requested: FetchFrom | None = None

    def on_log_moved(self, log: OwnLog) -> None:
        """Switch to this log object, which has the same content."""
        self._log = log

    def fetch_from(self) -> FetchFrom:
        """Return the next fetch. Everything below its offset must have been written."""
        log, partition = self._log, self.partition
        end = log.log_end_offset
        if end < partition.high_watermark:
            partition.on_truncated(end)  # truncation inside a batch removes the whole batch
        epoch = log.latest_epoch
        if epoch == NO_EPOCH:
            # Keep the committed records: a format without leader epochs cannot be aligned.
            end = max(log.log_start_offset, min(end, partition.high_watermark))
        return FetchFrom(end, epoch, partition.leader_epoch, log.log_start_offset)

    def on_answer(self, sent: FetchFrom, got: Fetched) -> Step:
        """Return the step that the leader's response requires."""
        self._counted_epoch = NO_EPOCH
        # The role, the epoch or the log changed while the request was in flight. Kafka's fetcher
        # compares epoch and offset for the same reason.
        if not self._is_current(sent):
            return Ignore()
        # The leader's log starts later, because of retention, or ends earlier, after an unclean
        # election. Its bounds show which.
        if got.error_code == OffsetOutOfRange.code:
            self._requested = sent
            return FetchBounds()
        if got.error_code:
            return Wait(self._backoff_ms)
        if got.diverging is not None:
            return self._align(sent, got.diverging)
        # This happens only with records that lack epochs. `fetch_from` then fetches from the high
        # watermark, and everything above it is removed.
        if self._log.log_end_offset > sent.offset:
            return self._cut(sent.offset)
        self._counted_epoch = sent.leader_epoch
        return Append()

    def on_appended(self, got: Fetched) -> list[Advance]:
        """Note that the records of an `Append`, if any, are in the log (RE-6).

        The shell then raises the log's start to the leader's, if that is below the watermark.
        """
        partition = self.partition
        if partition.is_leader or self._counted_epoch != partition.leader_epoch:
            return []  # the role changed while the records were written
        return partition.on_copied(self._log.log_end_offset, got.high_watermark)

    def on_bounds(self, earliest: int, latest: int) -> Step:
        """Process the leader's bounds that `FetchBounds` requested, and return the next step."""
        requested, self._requested = self._requested, None
        if requested is None or not self._is_current(requested):
            return Ignore()
        end = self._log.log_end_offset
        # After an unclean election, the leader's log is shorter. Like Kafka, truncate to its end.
        if latest < end:
            return self._cut(latest)
        if earliest > end:
            # The leader has already deleted the next records.
            self.partition.on_started_at(earliest)
            return StartAt(earliest)
        return Wait(self._backoff_ms)  # the offset is back in range

    def _is_current(self, sent: FetchFrom) -> bool:
        if self.partition.is_leader or sent.leader_epoch != self.partition.leader_epoch:
            return False
        now = self.fetch_from()
        return (sent.offset, sent.last_fetched_epoch) == (now.offset, now.last_fetched_epoch)

    def _align(self, sent: FetchFrom, leaders: EpochEnd) -> Step:
        if sent == self._diverged:
            # The truncation removed nothing, so back off before asking the leader again.
            self._diverged = None
            return Wait(self._backoff_ms)
        self._diverged = sent
        return self._cut(aligned_offset(self._log, leaders, self.partition.high_watermark).offset)

    def _cut(self, offset: int) -> Truncate | StartAt:
        partition = self.partition
        lost = max(0, partition.high_watermark - offset)
        # Nothing in this log is valid. As in Kafka, empty it and start it at that offset.
        if offset < self._log.log_start_offset:
            partition.on_started_at(offset)
            return StartAt(offset, lost)
        partition.on_truncated(offset)
        return Truncate(offset, lost)
