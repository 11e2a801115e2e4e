"""The log of one partition: ordered segments, one of them active.

Owns the order "check, place, write, count": a batch gets its offset when it is known to be good, is
written with one call, and only then moves the log end, the indexes and the producer's sequence. If
the write fails nothing has happened. Reads answer whole batches as slices of files.

It knows no roles: whoever calls says in which leader epoch, and up to which offset a reader may
see. Nothing is on disk for sure before `flush`: durability comes from replicas. A log is opened by
`recovery.open_log`, which also says what of it survives a crash.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from barnabas.config import LogConfig
from barnabas.errors import OffsetOutOfRange
from barnabas.records.batch import assign_in_place, stamp_in_place
from barnabas.storage.admission import Limits, admit
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import Files
from barnabas.storage.producers import Producers
from barnabas.storage.search import Found, find_newest, find_timestamp
from barnabas.storage.segment import Segment
from barnabas.storage.snapshot import snapshot_path, write_snapshot
from barnabas.types import FileSlice, TopicPartition

_OPEN_ROLLED = 2  # rolled segments whose files stay open for readers that catch up

NO_TIMESTAMP = -1


class AppendResult(NamedTuple):
    """Where a batch is in the log."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 if the batch keeps its producer's times."""
    log_start_offset: int
    size_bytes: int
    is_duplicate: bool
    """It was there already: a retry. Nothing was written."""


class Contents(NamedTuple):
    """What was found in a partition's directory."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: Producers
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    snapshot_offset: int
    topic_id: bytes | None


class Log:
    """One replica's data."""

    __slots__ = (
        "_config",
        "_directory_synced",
        "_files",
        "_is_abandoned",
        "_limits",
        "_open_rolled",
        "_segments",
        "_snapshot_offset",
        "_snapshot_unsynced",
        "_sync_failed",
        "directory",
        "epochs",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        files: Files,
        directory: Path,
        topic_partition: TopicPartition,
        config: LogConfig,
        contents: Contents,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = contents.topic_id
        """None in the directories of Kafka before 2.8."""
        self.directory = directory
        self.log_start_offset = contents.log_start_offset
        self.log_end_offset = contents.log_end_offset
        """The offset that the next record gets."""
        self.recovery_point = contents.recovery_point
        """Everything below is on disk for sure."""
        self.epochs = contents.epochs
        self.producers = contents.producers
        self._files = files
        self._config = config
        self._limits = Limits.of(config)
        self._segments = contents.segments
        self._snapshot_offset = contents.snapshot_offset
        self._snapshot_unsynced = False
        self._open_rolled: list[Segment] = []
        self._directory_synced = False
        self._sync_failed = False
        self._is_abandoned = False

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self._config = config
        self._limits = Limits.of(config)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Oldest first; the last one is active."""
        return tuple(self._segments)

    # --- append ----------------------------------------------------------------------------------

    def assign_leader_epoch(self, leader_epoch: int) -> None:
        """On becoming leader, before any append: the epoch begins at the log end."""
        self.epochs.assign(leader_epoch, self.log_end_offset)

    def append(self, records: memoryview, leader_epoch: int, now_ms: int) -> AppendResult:
        """Append a producer's batch as the leader; patches offset, epoch and time into `records`.

        Raises the KafkaError that the producer is to be told, or OSError; the log is then as it
        was. A repetition of one of its last five batches is answered with where that one is.
        """
        limits = self._limits
        header = admit(records, limits)
        has_producer = header.producer_id >= 0
        if has_producer:
            before = self.producers.check(header)
            if before is not None:
                return self._duplicate(before.base_offset, before.last_offset, before.timestamp)
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        assign_in_place(records, 0, base_offset, leader_epoch)
        timestamp = header.max_timestamp
        log_append_time_ms = NO_TIMESTAMP
        if limits.is_log_append_time:
            stamp_in_place(records, 0, header, now_ms)
            timestamp = log_append_time_ms = now_ms
        size = len(records)
        segment = self._segments[-1]
        if segment.size_bytes and (
            segment.size_bytes > limits.segment_bytes - size
            or not segment.fits(last_offset)
            or self._is_full_or_old(segment, timestamp, now_ms)
        ):
            segment = self.roll()
        segment.append(records, base_offset, last_offset, timestamp)
        segment.index_append(segment.size_bytes - size, last_offset, limits.index_interval_bytes)
        self.log_end_offset = last_offset + 1
        if has_producer:
            self.producers.apply(header, base_offset, timestamp)
        return AppendResult(
            base_offset, last_offset, log_append_time_ms, self.log_start_offset, size, False
        )

    def _duplicate(self, base_offset: int, last_offset: int, timestamp: int) -> AppendResult:
        time = timestamp if self._limits.is_log_append_time else NO_TIMESTAMP
        return AppendResult(base_offset, last_offset, time, self.log_start_offset, 0, True)

    def _is_full_or_old(self, segment: Segment, timestamp: int, now_ms: int) -> bool:
        """Whether the index leaves no room, or the records span `segment.ms` (ST-2).

        Age is told by the records' own times, by the clock only where the first batch has none.
        """
        limits = self._limits
        if len(segment.offset_index) >= limits.index_entries:
            return True
        if len(segment.time_index) >= limits.time_index_entries:
            return True
        first = segment.first_timestamp
        if first < 0:
            if segment.untimed_since_ms is None:
                segment.untimed_since_ms = now_ms
            first, timestamp = segment.untimed_since_ms, now_ms
        return timestamp - first > self._segment_ms(segment)

    def _segment_ms(self, segment: Segment) -> int:
        """`segment.ms` less a part of the jitter that the segment's name decides.

        The jitter keeps the partitions of a topic from rolling, and being flushed, all at once; a
        hash of the name spreads them as well as chance does, and the same way in every run.
        """
        jitter_ms = self._limits.segment_jitter_ms
        if jitter_ms:
            name = f"{self.topic_partition}/{segment.base_offset}"
            return self._limits.segment_ms - zlib.crc32(name.encode()) % jitter_ms
        return self._limits.segment_ms

    def roll(self) -> Segment:
        """Close the active segment and begin a new one at the log end."""
        active = self._segments[-1]
        assert active.size_bytes, "an empty segment cannot roll: the new one has the same name"
        active.write_out()
        segment = Segment.create(self._files, self.directory, self.log_end_offset)
        self._take_snapshot()
        self._segments.append(segment)
        self._directory_synced = False
        self._keep_open(active)
        return segment

    def _take_snapshot(self) -> None:
        if self._snapshot_offset < self.log_end_offset:
            write_snapshot(self._files, self.directory, self.log_end_offset, self.producers)
            self._snapshot_offset = self.log_end_offset
            self._snapshot_unsynced = True

    # --- read ------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, end_offset: int, at_least_one_batch: bool = True
    ) -> list[FileSlice]:
        """Whole batches from the one that holds `offset` on, below `end_offset`.

        At most `max_bytes`, but for a first batch that is larger, if `at_least_one_batch`. []
        at the end; OffsetOutOfRange outside of the log. The caller releases the slices.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"offset {offset} is not in {self.topic_partition}, which has "
                f"{self.log_start_offset} to {self.log_end_offset}"
            )
        slices: list[FileSlice] = []
        max_bytes = max(0, max_bytes)
        end_offset = min(end_offset, self.log_end_offset)
        if offset >= end_offset:
            return slices
        try:
            i = self._index_of(offset)
            start = self._segments[i].locate(offset)
            while True:
                segment = self._segments[i]
                end = self._end_position(i, end_offset)
                start = end if start is None else start
                size = end - start
                if size > max_bytes:
                    end = start
                    if max_bytes > 0:
                        end = segment.boundary(start, start + max_bytes, start + size)
                    if end == start and at_least_one_batch and not slices:
                        end = start + next(segment.headers(start)).header.size_bytes
                if end > start:
                    slices.append(segment.slice(start, end))
                    max_bytes -= end - start
                if end < segment.size_bytes or i + 1 == len(self._segments) or max_bytes <= 0:
                    return slices
                i, start = i + 1, 0
        except BaseException:
            for each in slices:
                each.release()
            raise

    def _index_of(self, offset: int) -> int:
        """Which segment's range holds the offset."""
        segments = self._segments
        i = len(segments) - 1
        if offset < segments[i].base_offset:
            i = bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1
            self._keep_open(segments[i])
        return i

    def _end_position(self, i: int, end_offset: int) -> int:
        """Where in segment `i` a reader has to stop."""
        segment = self._segments[i]
        following = i + 1
        if following == len(self._segments):
            next_offset = self.log_end_offset
        else:
            self._keep_open(segment)
            next_offset = self._segments[following].base_offset
        if end_offset < next_offset:
            if end_offset <= segment.base_offset:
                return 0
            end = segment.locate(end_offset)
            if end is not None:
                return end
        return segment.size_bytes

    def _keep_open(self, segment: Segment) -> None:
        """The files of the last few rolled segments that were read stay open; others close."""
        opened = self._open_rolled
        if segment not in opened:
            opened.append(segment)
            if len(opened) > _OPEN_ROLLED:
                opened.pop(0).release()

    def offset_for_timestamp(self, timestamp_ms: int, end_offset: int) -> Found | None:
        """Offset, time and leader epoch of the first record, below `end_offset`, that is not older
        than the timestamp (ST-4); None if there is none."""
        found = find_timestamp(self._segments, timestamp_ms, self.log_start_offset)
        self._close_searched()
        return found if found and found.offset < end_offset else None

    def max_timestamp_offset(self) -> Found | None:
        """Offset, time and leader epoch of the youngest record; None if no record has a time."""
        found = find_newest(self._segments)
        self._close_searched()
        return found

    def _close_searched(self) -> None:
        """A search may have looked into every segment."""
        for segment in self._segments[:-1]:
            if segment not in self._open_rolled:
                segment.release()

    # --- on disk ---------------------------------------------------------------------------------

    def flush(self) -> None:
        """Make everything durable, and say so by the recovery point."""
        if self.recovery_point < self.log_end_offset:
            self._sync(self._unflushed_paths(len(self._segments)), self.log_end_offset)

    def take_unflushed(self) -> list[Callable[[], None]]:
        """Calls that make the rolled segments durable; they do nothing else and suit a thread."""
        active = self._segments[-1]
        if self.recovery_point >= active.base_offset:
            return []
        paths = self._unflushed_paths(len(self._segments) - 1)
        return [partial(self._sync, paths, active.base_offset)]

    def _unflushed_paths(self, end: int) -> list[Path]:
        begin = bisect_right(
            self._segments, self.recovery_point, key=lambda segment: segment.base_offset
        )
        paths = []
        for segment in self._segments[max(0, begin - 1) : end]:
            paths += segment.paths()
        if self._snapshot_unsynced:
            self._snapshot_unsynced = False
            paths.append(snapshot_path(self.directory, self._snapshot_offset))
        return paths

    def _sync(self, paths: list[Path], recovery_point: int) -> None:
        # A kernel that failed to write a page may forget it and report success the next time, so
        # after one failure nothing is believed to be durable until a restart has read it back.
        if self._sync_failed:
            raise OSError(f"an earlier fsync of {self.directory} failed; restart the broker")
        try:
            for path in paths:
                self._files.sync(path)
            self.epochs.flush()
            if not self._directory_synced:
                self._files.sync(self.directory)
                self._files.sync(self.directory.parent)
                self._directory_synced = True
        except OSError:
            if self._is_abandoned:
                return  # deleted while a thread was at it
            self._sync_failed = True
            raise
        self.recovery_point = max(self.recovery_point, recovery_point)

    def close(self) -> None:
        """Leave the directory as a clean stop of Kafka does: the next start need not scan it."""
        self._segments[-1].write_out()
        self._take_snapshot()
        self.flush()
        self.release()

    def release(self) -> None:
        """Give back all descriptors, without making anything durable or clean."""
        for segment in self._segments:
            segment.release()
        self._open_rolled.clear()

    def abandon(self) -> None:
        """The directory is about to go; whoever still holds slices can send them."""
        self._is_abandoned = True
        self.release()

    def expire_producers(self, before_ms: int) -> None:
        """Forget producers whose last record is older (`producer.id.expiration.ms`)."""
        self.producers.expire(before_ms)
