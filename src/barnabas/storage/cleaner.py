"""Chooses which logs to compact and which parts of them to clean, and builds the jobs for the
cleaner (ST-7).

    clean           the part below the first dirty offset, which is stored in
                    `cleaner-offset-checkpoint`; earlier passes have cleaned it
    dirty           everything from the first dirty offset on
    uncleanable     the end of the dirty part: the active segment, the segment with the last
                    stable offset (so nothing above the high watermark is cleaned), the first
                    segment younger than `min.compaction.lag.ms`, and all segments after any of
                    these

A log is cleaned when the ratio of dirty bytes exceeds `min.cleanable.dirty.ratio`, or when a dirty
segment is older than `max.compaction.lag.ms` (KIP-354). The log with the highest ratio is cleaned
first. Cleaning always starts at the first segment of the log, because dirty records may supersede
clean ones.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from barnabas.config.topic_keys import LONG_MAX
from barnabas.errors import CorruptData
from barnabas.storage.checkpoint import read_offsets, write_offsets
from barnabas.storage.compaction.job import Job, LastRecord, Source
from barnabas.storage.directory import CLEANER
from barnabas.storage.files import Files
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.log import Log
from barnabas.storage.producers import NO_OFFSET, Producer
from barnabas.storage.segment import Segment, Sizes
from barnabas.storage.transaction_index import ABORTED_ENTRY_BYTES, Aborted
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """The limits that apply to one pass, taken from the broker's configuration."""

    buffer_bytes: int
    read_bytes: int
    bytes_per_second: float
    load_factor: float = 0.9


class Cleanable(NamedTuple):
    """Describes a compacted log and its clean and dirty parts."""

    log: Log
    first_dirty_offset: int
    sources: tuple[Segment, ...]
    """The segments that may be cleaned."""
    end_offset: int
    """The offset right after the last source."""
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        return self.dirty_bytes / max(1, self.clean_bytes + self.dirty_bytes)

    @property
    def is_due(self) -> bool:
        if not self.dirty_bytes:
            return False
        return self.is_overdue or self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def is_compacted(log: Log) -> bool:
    return log.config.is_compacted


def examine(log: Log, stable_offset: int, now_ms: int) -> Cleanable:
    """Measure the dirty part of a log that ends at the last stable offset, `stable_offset`."""
    segments = log.segments
    first_dirty_offset = _first_dirty_offset(log)
    dirty_from = max(0, _index_of(segments, first_dirty_offset))
    # The active segment is still being written to, and transactions above the last stable offset
    # may still be aborted.
    uncleanable = max(first_dirty_offset, min(stable_offset, segments[-1].base_offset))
    end = max(0, _index_of(segments, uncleanable))
    lag_ms = log.config.min_compaction_lag_ms
    # Consumers must have at least `min.compaction.lag.ms` to read a record before it is compacted
    # away.
    if lag_ms > 0:
        for i in range(dirty_from, end):
            if segments[i].max_timestamp > now_ms - lag_ms:
                end = i
                break
    dirty = segments[dirty_from:end]
    return Cleanable(
        log,
        first_dirty_offset,
        segments[:end],
        segments[end].base_offset,
        sum(each.size_bytes for each in segments if each.base_offset < first_dirty_offset),
        sum(each.size_bytes for each in dirty),
        _is_overdue(dirty, now_ms - log.config.max_compaction_lag_ms),
    )


def _first_dirty_offset(log: Log) -> int:
    offset = log.first_dirty_offset
    if log.log_start_offset <= offset <= log.log_end_offset:
        return offset
    # Clean the whole log, because records were deleted or a crash removed the end of the log.
    return log.log_start_offset


def _index_of(segments: tuple[Segment, ...], offset: int) -> int:
    """Return the index of the segment that contains the offset, or -1 if all segments begin above
    the offset.
    """
    for i in range(len(segments) - 1, -1, -1):
        if segments[i].base_offset <= offset:
            return i
    return -1


def _is_overdue(dirty: Iterable[Segment], before_ms: int) -> bool:
    if before_ms <= 0:  # with the default lag, do not open the files
        return False
    times = [first for each in dirty if (first := each.first_timestamp) > 0]
    return min(times, default=LONG_MAX) < before_ms


def dirtiest(found: Iterable[Cleanable]) -> Cleanable | None:
    """Return the log with the highest ratio of dirty bytes among the logs due for cleaning, or None
    if no log is due.
    """
    due = [each for each in found if each.is_due]
    return max(due, key=lambda each: each.dirty_ratio, default=None)


def job_of(cleanable: Cleanable, limits: Limits, now_ms: int) -> Job:
    """Return the job that cleans the log from its first segment on."""
    log, sources = cleanable.log, cleanable.sources
    config = log.config
    bases = [each.base_offset for each in sources[1:]]
    ends = [*bases, cleanable.end_offset]
    return Job(
        directory=str(log.directory.absolute()),
        sources=tuple(
            Source(each.base_offset, end, _sizes(each))
            for each, end in zip(sources, ends, strict=True)
        ),
        first_dirty_offset=cleanable.first_dirty_offset,
        aborted=tuple(_aborted_behind(log, cleanable.end_offset)),
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        buffer_bytes=limits.buffer_bytes,
        read_bytes=limits.read_bytes,
        bytes_per_second=limits.bytes_per_second,
        load_factor=limits.load_factor,
    )


def _sizes(segment: Segment) -> Sizes:
    return Sizes(
        segment.size_bytes,
        len(segment.offset_index) * OFFSET_ENTRY.size,
        len(segment.time_index) * TIME_ENTRY.size,
        0 if segment.aborted is None else len(segment.aborted) * ABORTED_ENTRY_BYTES,
    )


def _aborted_behind(log: Log, end_offset: int) -> Iterator[Aborted]:
    """Yield the transactions that began below the offset but were aborted at or above it."""
    for segment in log.segments:
        if segment.base_offset >= end_offset and segment.aborted is not None:
            for entry in segment.aborted.entries(0, len(segment.aborted)):
                # The cleaner cannot detect this abort, because the marker is above the part of the
                # log that it reads.
                if entry.first_offset < end_offset:
                    yield entry
                if entry.last_stable_offset >= end_offset:
                    return


def last_records(
    producers: Iterable[tuple[int, Producer | None]], end_offset: int
) -> dict[int, LastRecord]:
    """Return the last record of each producer whose last record is below the offset.

    These records must be kept. An expired producer is passed as None and ignored.
    """
    found = {}
    for producer_id, producer in producers:
        if producer is None:
            continue
        # If compaction has left only transaction markers of a producer, the last marker preserves
        # the producer's epoch.
        last_offset = producer.batches[-1].last_offset if producer.batches else NO_OFFSET
        if last_offset < end_offset:
            found[producer_id] = LastRecord(producer.epoch, last_offset)
    return found


class Checkpoints:
    """Manages the file `cleaner-offset-checkpoint` in each log directory.

    The offsets are stored in the log objects, so truncating a log also lowers its first dirty
    offset.
    """

    __slots__ = ("_files", "_found", "_written")

    def __init__(self, files: Files) -> None:
        self._files = files
        self._found: dict[Path, dict[TopicPartition, int]] = {}
        self._written: dict[Path, Mapping[TopicPartition, int]] = {}

    def recall(self, log: Log, directory: Path) -> None:
        """Restore the first dirty offset of a log that has just been opened. Raises OSError."""
        if log.first_dirty_offset < 0:
            if directory not in self._found:
                self._found[directory] = self._read(directory)
            # Use each entry only once, because a log created later with the same name is a
            # different log.
            offset = self._found[directory].pop(log.topic_partition, -1)
            # The broker may have crashed after a truncation was written to the log but before it
            # was written to this file.
            offset = min(offset, log.gaps.end) if log.gaps.end >= 0 else offset
            # No pass has seen the records written after the truncation. It is always safe to clean
            # the whole log.
            log.first_dirty_offset = -1 if log.truncations else offset

    def _read(self, directory: Path) -> dict[TopicPartition, int]:
        try:
            offsets = read_offsets(self._files, directory / CLEANER)
        except CorruptData as error:
            _log.warning(
                "%s; ignoring this cleaner checkpoint and starting without saved offsets", error
            )
            return {}
        self._written[directory] = dict(offsets)
        return offsets

    def offsets_to_write(
        self, directory: Path, logs: Iterable[Log]
    ) -> Mapping[TopicPartition, int] | None:
        """Return the first dirty offset of each log in a directory, or None if the file already
        contains them.
        """
        offsets = {
            log.topic_partition: log.first_dirty_offset
            for log in logs
            # Keep the lines of logs that `recall` has not read yet.
            if log.first_dirty_offset >= 0
        }
        return None if offsets == self._written.get(directory, {}) else offsets

    def write(self, directory: Path, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the offsets durably. This may run in a thread. Raises OSError."""
        write_offsets(self._files, directory / CLEANER, offsets)
        self._written[directory] = offsets
