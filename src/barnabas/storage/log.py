"""Implements the log of a partition: appends, reads, truncation, and start and end offsets.

An append has four steps: check, place, stage, write. A valid batch is assigned an offset, and the
state of the log is updated immediately: the log end, the indexes and the producer's sequence
number. The bytes are buffered until `write_staged`, so that all appends in one iteration of the
event loop need only one system call; a read first writes them to the file. If a write fails, the
state in memory differs from the disk. The log has then failed, and every call raises an error until
the log is reopened. The staged batches have not been acknowledged at that point.

A log does not know whether this broker leads the partition or follows it: the caller passes the
leader epoch and the offset up to which to read. Before `flush`, no record is guaranteed to be on
disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from barnabas.config import LogConfig
from barnabas.errors import OffsetOutOfRange
from barnabas.records.batch import PREFIX, BatchHeader, stamp_in_place
from barnabas.records.control_records import ABORT, Marker
from barnabas.storage.append_result import AppendResult, new_result
from barnabas.storage.batch_validation import Limits, admit, admit_marker, admit_own
from barnabas.storage.copies import UNKNOWN_BOUND, Copy, check_copies
from barnabas.storage.durability import Durability
from barnabas.storage.files import Files
from barnabas.storage.gaps import Gaps
from barnabas.storage.index import MAX_RELATIVE_OFFSET
from barnabas.storage.loaded_log import LoadedLog
from barnabas.storage.log_health import LogHealth
from barnabas.storage.producer_state import ProducerState
from barnabas.storage.producers import Producers
from barnabas.storage.retention import Bounds, Removal, Retention
from barnabas.storage.roll_rule import RollRule
from barnabas.storage.segment import NO_TIMESTAMP, Segment
from barnabas.storage.segments import NO_END, Segments
from barnabas.storage.swap import Swaps
from barnabas.storage.transaction_index import Aborted, AbortedTransaction
from barnabas.storage.truncation import Cut, Truncation
from barnabas.types import FileSlice, TopicPartition


class Log:
    """Represents the log of one replica."""

    __slots__ = (
        "_config",
        "_durability",
        "_retention",
        "_roll_rule",
        "_segments",
        "directory",
        "epochs",
        "first_dirty_offset",
        "gaps",
        "health",
        "is_cold",
        "limits",
        "log_end_offset",
        "log_start_offset",
        "producer_state",
        "swaps",
        "topic_id",
        "topic_partition",
        "truncation",
    )

    def __init__(
        self,
        files: Files,
        directory: Path,
        topic_partition: TopicPartition,
        config: LogConfig,
        loaded: LoadedLog,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = loaded.topic_id
        """The topic id, or None if Kafka before version 2.8 created the directory."""
        self.directory = directory
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        """The offset of the next record."""
        self.epochs = loaded.epochs
        self.health = LogHealth()
        self.config = config
        self._segments = Segments(files, directory, loaded.segments)
        self.is_cold = self._segments.is_cold
        self._durability = Durability(
            files, self._segments, self.epochs, loaded.durable, self.health
        )
        self.producer_state = ProducerState(files, directory, self._durability, loaded)
        self.swaps = Swaps(files, directory, self._segments, self._durability)
        self._retention = Retention(files, self._segments, self._durability, self.swaps)
        self.first_dirty_offset = -1
        """The first offset that has not been cleaned, or -1 until it has been read from the
        checkpoint.
        """
        self.gaps = Gaps(files, directory, loaded.gaps_end)
        self.truncation = Truncation(
            files,
            self._segments,
            self._durability,
            self.swaps,
            self.gaps,
            self.producer_state,
        )

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self.limits = Limits.of(config)
        self._roll_rule = RollRule.of(config)

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, oldest first; the last one is active."""
        return tuple(self._segments)

    @property
    def producers(self) -> Producers:
        """The producers at the log end. After a truncation, they are valid only when the truncation
        is settled.
        """
        return self.producer_state.producers

    @property
    def truncations(self) -> int:
        """The number of truncations since the log was opened."""
        return self.truncation.count

    @property
    def unsettled(self) -> Cut | None:
        """The last truncation, until it has reached the disk. Nothing may be written to the log
        before that.
        """
        return self.truncation.unsettled

    @property
    def recovery_point(self) -> int:
        """The offset below which every record is guaranteed to be on disk."""
        return self._durability.recovery_point

    @property
    def recovery_checkpoint(self) -> int:
        """The offset to store in the checkpoint. After a crash, the scan begins with the segment
        that contains it.
        """
        return self._durability.checkpoint

    @property
    def latest_epoch(self) -> int:
        """The newest leader epoch in the log, or -1 if the log has no epochs."""
        return self.epochs.latest

    # --- append ----------------------------------------------------------------------------------

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """Start the leader epoch at the log end. A leader must do this before its first append."""
        self.epochs.assign(leader_epoch, self.log_end_offset)

    def append(
        self, records: memoryview, leader_epoch: int, wall_ms: int, is_unseen: bool = False
    ) -> AppendResult:
        """Append a producer's batch as the leader, and write the offset, the epoch and the time
        into `records`.

        The batch is staged, so `records` must not change until `write_staged`. If a KafkaError is
        raised, it must be sent to the producer, and the log is unchanged. If OSError is raised, the
        log has failed. If the batch duplicates one of the producer's last five batches, the result
        for that batch is returned. See `admit`.
        """
        if self.health.is_failed or self.truncation.unsettled is not None:
            self.settle()
        # All checks must succeed before anything is changed.
        header = admit(records, self.limits, wall_ms if is_unseen else None)
        if header.producer_id < 0:
            return self._place(records, header, leader_epoch, wall_ms)
        state = self.producer_state
        before = state.producers.check(header)
        if before is not None:
            # If the first response was lost, the retry gets the offsets that the first attempt was
            # assigned (KIP-98).
            time = before.timestamp if self.limits.is_log_append_time else NO_TIMESTAMP
            base_offset, last_offset = before.base_offset, before.last_offset
            return AppendResult(base_offset, last_offset, time, self.log_start_offset, 0, True)
        result = self._place(records, header, leader_epoch, wall_ms)
        stamped_ms = result.log_append_time_ms
        timestamp = header.max_timestamp if stamped_ms == NO_TIMESTAMP else stamped_ms
        state.producers.apply(header, result.base_offset, timestamp)
        state.batches_end = self.log_end_offset
        return result

    def append_own(self, records: memoryview, leader_epoch: int, wall_ms: int) -> AppendResult:
        """Append a batch that was built by a coordinator on this broker, in the same way as
        `append`.

        If the batch has a producer id, it is part of that producer's transaction. It has no
        sequence numbers, so duplicates are not detected. Raises InvalidProducerEpoch or
        MessageTooLarge.
        """
        self.settle()
        header = admit_own(records, self.limits)
        if header.producer_id < 0:
            return self._place(records, header, leader_epoch, wall_ms)
        state = self.producer_state
        state.producers.check_epoch(header.producer_id, header.producer_epoch)
        result = self._place(records, header, leader_epoch, wall_ms)
        state.producers.apply(header, result.base_offset, header.max_timestamp)
        state.batches_end = self.log_end_offset
        return result

    def append_control(self, records: memoryview, leader_epoch: int, wall_ms: int) -> AppendResult:
        """Append a transaction marker that was sent by its coordinator, in the same way as
        `append`.

        Raises InvalidProducerEpoch if a newer producer has written to this log, or
        TransactionCoordinatorFenced if a newer coordinator has.
        """
        self.settle()
        header, marker = admit_marker(records)
        self.producer_state.producers.check_marker(
            header.producer_id, header.producer_epoch, marker.coordinator_epoch
        )
        result = self._place(records, header, leader_epoch, wall_ms)
        stamped_ms = result.log_append_time_ms
        placed = marker._replace(
            offset=result.base_offset,
            timestamp_ms=marker.timestamp_ms if stamped_ms == NO_TIMESTAMP else stamped_ms,
        )
        self._end_transaction(header, placed)
        return result

    def _place(
        self, records: memoryview, header: BatchHeader, leader_epoch: int, wall_ms: int
    ) -> AppendResult:
        """Assign an offset to an admitted batch, choose its segment, and stage it."""
        limits = self.limits
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if leader_epoch > self.epochs.latest:
            self.assign_leader_epoch(leader_epoch)
        # The checksum does not cover these fields, so it stays valid.
        PREFIX.pack_into(records, 0, base_offset, header.batch_length, leader_epoch)
        timestamp = header.max_timestamp
        log_append_time_ms = NO_TIMESTAMP
        if limits.is_log_append_time:
            stamp_in_place(records, 0, header, wall_ms)
            timestamp = log_append_time_ms = wall_ms
        size = len(records)
        segment = self._segments.active
        if segment.size_bytes and self._roll_rule.is_due(
            segment, size, last_offset, timestamp, wall_ms
        ):
            segment = self.roll()
        segment.append(records, base_offset, last_offset, timestamp, limits.index_interval_bytes)
        self.log_end_offset = last_offset + 1
        return new_result(
            (base_offset, last_offset, log_append_time_ms, self.log_start_offset, size, False)
        )

    def append_as_follower(
        self, records: memoryview, wall_ms: int, high_watermark: int = UNKNOWN_BOUND
    ) -> int:
        """Stage batches from the leader's log unchanged, and return how many were staged.

        If the batches do not continue this log, raises CorruptData and leaves the log unchanged.
        See `check_copies`.
        """
        self.settle()
        end_offset = self.log_end_offset
        is_empty, latest = end_offset == self.log_start_offset, self.epochs.latest
        copies = check_copies(records, end_offset, latest, high_watermark, is_empty=is_empty)
        begins_within = bool(copies) and copies[0].header.base_offset < end_offset
        if begins_within:
            # After DeleteRecords, the leader's log may begin within a batch while this log is
            # empty. Copy the whole batch, and then raise the log start to the leader's log start.
            self._segments.active.need_descriptors()
            self.start_at(copies[0].header.base_offset)
        for each in copies:
            self._copy(each, wall_ms)
        if begins_within:
            self.raise_log_start(end_offset)
        return len(copies)

    def _copy(self, copied: Copy, wall_ms: int) -> None:
        records, header, marker = copied
        base_offset, last_offset = header.base_offset, header.last_offset
        if header.partition_leader_epoch > self.epochs.latest:
            self.epochs.assign(header.partition_leader_epoch, base_offset)
        timestamp, interval_bytes = header.max_timestamp, self.limits.index_interval_bytes
        segment = self._segments.active
        if self._roll_rule.is_due(segment, len(records), last_offset, timestamp, wall_ms):
            segment = self.roll(header)
        segment.append(records, base_offset, last_offset, timestamp, interval_bytes)
        self.log_end_offset = last_offset + 1
        if marker is not None:
            self._end_transaction(header, marker)
        # Transaction markers are the only control batches that affect the producer state.
        elif header.producer_id >= 0 and not header.is_control:
            self.producer_state.producers.apply(header, base_offset, timestamp)
            self.producer_state.batches_end = self.log_end_offset

    def _end_transaction(self, header: BatchHeader, marker: Marker) -> None:
        self.producer_state.batches_end = self.log_end_offset
        ended = self.producer_state.producers.apply_marker(
            header.producer_id, header.producer_epoch, marker
        )
        # If the transaction has no data, readers do not have to skip anything.
        if ended is not None and marker.type == ABORT:
            self._segments.active.index_aborted(Aborted(header.producer_id, *ended))

    @property
    def has_staged(self) -> bool:
        """True if there are batches that `write_staged` has not written yet."""
        return bool(self._segments.active.staged)

    def write_staged(self) -> None:
        """Write all staged batches in one call. If this raises OSError, the log has failed."""
        if self.health.is_failed or self.truncation.unsettled is not None:
            self.settle()
        try:
            self._segments.active.write_staged()
        except OSError:
            self.health.is_failed = True
            raise

    @contextmanager
    def _failing(self, *, is_resumable: bool = False) -> Iterator[None]:
        """Enclose changes to files: write the staged batches first, and mark the log as failed
        after an OSError.

        If `is_resumable` is set, running out of file descriptors does not mark the log as failed.
        """
        self.write_staged()
        with self.health.failing(is_resumable=is_resumable):
            yield

    # --- roll ------------------------------------------------------------------------------------

    def roll(self, copied: BatchHeader | None = None) -> Segment:
        """Close the active segment and begin a new one at the offset where its records end (see
        `gaps`).
        """
        active, base_offset = self._segments.active, self.log_end_offset
        if base_offset == self.truncation.last_offset:
            # the log may end within a gap because of the truncation
            base_offset = active.end_offset()
        with self._failing(is_resumable=True):
            if copied is not None and copied.last_offset - base_offset > MAX_RELATIVE_OFFSET:
                self.flush()  # no index can span the gap before this batch
                base_offset = copied.base_offset
                self.gaps.reach(base_offset)
            assert active.base_offset < base_offset, "the new segment would have the same name"
            # The indexes of the segment are complete now. As in Kafka, the snapshot is named after
            # the next segment.
            active.write_out()
            self.producer_state.take_snapshot(self.log_end_offset, may_wait=True)
            segment = self._segments.begin(base_offset)
            self._durability.on_segment_begun()
        return segment

    # --- read ------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, end_offset: int, at_least_one_batch: bool = True
    ) -> list[FileSlice]:
        """Return whole batches below `end_offset`, starting with the one that contains `offset`.

        The total size is at most `max_bytes`. With `at_least_one_batch`, the first batch is
        returned even if it is larger. At the log end, the result is []. If the offset is outside
        the log, raises OffsetOutOfRange. The caller must release the slices.
        """
        log_end_offset = self.log_end_offset
        if not self.log_start_offset <= offset <= log_end_offset:
            has = f"{self.topic_partition}, which has offsets {self.log_start_offset} to"
            raise OffsetOutOfRange(f"offset {offset} is out of range for {has} {log_end_offset}")
        if self.health.is_failed or self._segments.active.staged:
            self.write_staged()
        if offset >= min(end_offset, log_end_offset):
            return []
        if end_offset >= log_end_offset:
            end_offset = NO_END
        return self._segments.read(
            offset, max(0, max_bytes), end_offset, at_least_one_batch, log_end_offset
        )

    def epoch_end_offset(self, leader_epoch: int) -> tuple[int, int]:
        """Return the largest epoch in the log that is not above the given epoch, and its end offset
        (KIP-101, KIP-279).

        Returns (-1, -1) if the given epoch is newer than all epochs in the log.
        """
        return self.epochs.end_offset_for(leader_epoch, self.log_end_offset)

    # --- transactions ----------------------------------------------------------------------------

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the offset at which read_committed consumers have to stop (CO-6).

        This is the start of the first transaction that is still open or whose marker is not below
        the high watermark. If there is no such transaction, it is the high watermark.
        """
        # A transaction may have begun below the log start, where no records can be read.
        return max(
            self.producer_state.producers.stable_below(high_watermark), self.log_start_offset
        )

    def aborted_transactions(self, fetch_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that consumers must skip between `fetch_offset` and
        `end_offset`.
        """
        self.write_staged()
        return self._segments.aborted_transactions(fetch_offset, end_offset)

    def expire_producers(self, before_ms: int) -> Iterator[None]:
        """Remove producers that have not written for too long (`producer.id.expiration.ms`). This
        runs in steps.
        """
        return self.producers.expiring(before_ms)

    # --- shorten ---------------------------------------------------------------------------------

    def raise_log_start(self, offset: int) -> None:
        """Raise the log start to `offset`, which must not be above the high watermark.

        The next call of `enforce_retention` removes the segments below the new log start.
        """
        assert offset <= self.log_end_offset, "a log cannot start beyond its end"
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def enforce_retention(self, now_ms: int, high_watermark: int, wall_ms: int | None) -> Removal:
        """Remove the segments beyond the topic's retention (ST-6), and return what was removed.

        If the time is unknown (`wall_ms` is None), age is ignored. The segments' files are renamed,
        and `remove_discarded` removes them after `file.delete.delay.ms`.
        """
        self.producer_state.producers.stable_below(
            high_watermark
        )  # drops transactions that ended long ago
        with self._failing(is_resumable=True):
            bounds = Bounds(self.log_start_offset, high_watermark, self.log_end_offset)
            removal = self._retention.removal(bounds, self._config, wall_ms)
            self._segments.close_searched()
            if (count := removal.segments) == 0:
                return removal
            if count == len(self._segments):
                self.roll()  # the active segment is removed too, so begin a new one
            self.raise_log_start(self._segments[count].base_offset)
            # This needs no file descriptor and cannot fail half-way.
            self._retention.remove(count, now_ms + self._config.file_delete_delay_ms)
        return removal

    def truncate(self, offset: int, *, settles: bool = True) -> None:
        """Remove everything from `offset` on, including the whole batch that contains it.

        The leader has different records from `offset` on. The part of that batch below `offset` is
        fetched again. If `settles` is False, the caller has to wait for the disk itself; see
        `unsettled` and `LogTruncations`.
        """
        with self._failing():
            if offset < self.log_end_offset:
                if offset > self.log_start_offset:
                    begin = self._segments.batch_begin(offset)
                    offset = max(begin, self.log_start_offset)
                self._cut(offset)
            self.epochs.truncate_from_end(offset)  # a segment may begin at the end of the log
        if settles:
            self.settle()

    def start_at(self, offset: int, *, settles: bool = True) -> None:
        """Empty the log and restart it at `offset`. This may also lower the log start."""
        with self._failing():
            # Remove the epochs from the file last, because a log without epochs cannot show that it
            # has diverged.
            self._cut(offset, is_all=True).epochs = self.epochs
            self.epochs.truncate_from_end(0)
            self.log_start_offset = offset
        if settles:
            self.settle()

    def _cut(self, offset: int, *, is_all: bool = False) -> Cut:
        self.first_dirty_offset = min(self.first_dirty_offset, offset)
        cut = self.truncation.cut(offset, self.log_start_offset, is_all=is_all)
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        return cut

    def settle(self) -> None:
        """Before anything is written, complete the last truncation on disk and find the producers.

        An OSError marks the log as failed, unless the process has run out of file descriptors. In
        that case, the next write tries again.
        """
        self.health.check(self.directory)
        if self.truncation.unsettled is not None:
            with self.health.failing(is_resumable=True):
                self.truncation.settle()

    @property
    def has_discarded(self) -> bool:
        return bool(self._segments.discards)

    def remove_discarded(self, now_ms: int) -> int:
        """Remove the discarded files that are due; return how many. This may run in a thread."""
        if self.health.is_abandoned:
            return 0  # another log may now have files with these names
        return self._segments.discards.remove_due(now_ms)

    def finish_swap(self, now_ms: int) -> bool:
        """Finish `swaps.begin`, once the directory has been synced.

        Returns False if the log has been truncated since then or has lost some of the segments.
        """
        with self._failing():
            return self.swaps.finish(now_ms + self._config.file_delete_delay_ms)

    def on_renamed(self, directory: Path) -> None:
        """Switch to the new name of the directory."""
        self.directory = directory
        self._segments.on_renamed(directory)
        self._durability.on_renamed(directory)
        self.producer_state.on_renamed(directory)
        self.swaps.on_renamed(directory)
        self.gaps.on_renamed(directory)

    def take_over(self, other: Log) -> None:
        """Replace another log that contains the same batches, and copy its producers and epochs."""
        self.producer_state.take_over(other.producer_state)
        self.epochs.take_over(other.epochs)
        with self._failing():
            if len(self.producers):
                self.producer_state.take_snapshot(self.log_end_offset)

    # --- on disk ---------------------------------------------------------------------------------

    def due_flush(self, now_ms: int) -> bool:
        """Return whether the log is due for a flush by `flush.messages` or `flush.ms` (ST-10)."""
        return self._durability.is_due(self.log_end_offset, self._config, now_ms)

    def flush(self) -> None:
        """Make the whole log durable and raise the recovery point."""
        self.write_staged()
        if self.recovery_point < self.log_end_offset:
            self._durability.sync(self._durability.take(self.log_end_offset))

    def take_flush(self) -> Callable[[], None]:
        """Return a function that makes the current log durable. It may run in a thread."""
        self.write_staged()
        durability = self._durability
        return partial(durability.sync, durability.take(self.log_end_offset, is_growing=True))

    def take_unflushed(self) -> list[Callable[[], None]]:
        """Return functions to call in order, in any thread, to make the rolled segments durable."""
        calls = self.producer_state.writing()
        unsynced = self._durability.take_rolled()
        if unsynced is not None:
            calls.append(partial(self._durability.sync, unsynced))
        return calls

    def close(self) -> None:
        """Close with the same files as Kafka, so that the next start need not scan the log."""
        with self._failing():
            self.swaps.undo()
            self._segments.active.write_out()
            self.producer_state.take_snapshot(self.log_end_offset)
        if not self._durability.is_whole(self.log_end_offset):
            self._durability.sync(self._durability.take(self.log_end_offset))
            self._durability.on_closed()
        self.release()

    def release(self) -> None:
        """Close all file descriptors without syncing any file or marking the log as clean."""
        self._segments.release()

    def rest(self) -> None:
        """Close the file descriptors if nothing was appended since this was last called."""
        self._segments.rest(self.log_end_offset)

    def abandon(self) -> None:
        """Give up the log because its directory is about to be removed or cannot be reached.

        Any later use raises LogAbandoned. Slices that were returned earlier can still be read.
        """
        self.health.abandon()
        self.release()
