"""Opens a log, and scans it after a crash (ST-8).

After a clean stop, all files are complete, and only the headers after the last index entry are
read, to find the log end. After a crash the segments from the recovery point on are scanned batch
by batch. The log ends at the first batch that is not whole or fails its checksum. It also ends
where a segment ends before the next segment begins, unless compaction may be the reason (`gaps`).
Everything after the end is removed, and indexes, aborted transactions, epochs and producers are
rebuilt. Everything below the recovery point is durable and is not read.

A missing or damaged file that can be derived from the log is rebuilt, with one line in the broker's
log.

The process may die again during recovery, so nothing is written that a second run could
misinterpret. A truncated segment looks complete, so later segments are removed first, starting with
the last one.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from pathlib import Path

from barnabas.config import LogConfig
from barnabas.counted import counted
from barnabas.errors import CorruptData
from barnabas.storage.durability import Durable
from barnabas.storage.epochs import EpochEntry, LeaderEpochs
from barnabas.storage.files import Entry, Files
from barnabas.storage.gaps import UNKNOWN, read_gaps_end
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.leftovers import settle
from barnabas.storage.loaded_log import LoadedLog
from barnabas.storage.loading import Start
from barnabas.storage.log import Log
from barnabas.storage.partition_metadata import settle_topic_id
from barnabas.storage.producers import Producers
from barnabas.storage.replay import replay
from barnabas.storage.scan import Scan
from barnabas.storage.segment import (
    ABORTED_INDEX_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    Sizes,
    base_offset_in,
    segment_path,
)
from barnabas.storage.segments import NO_END
from barnabas.storage.snapshot import (
    load_newest_snapshot,
    snapshot_offsets,
    snapshot_path,
    write_snapshot,
)
from barnabas.storage.transaction_index import ABORTED_ENTRY_BYTES
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_INDEX_SUFFIX)


def open_log(
    files: Files,
    directory: Path,
    topic_partition: TopicPartition,
    config: LogConfig,
    start: Start,
) -> Log:
    """Open the log in a partition's directory, which must exist. Raises OSError or CorruptData."""
    opening = _Opening(files, directory, config, start)
    return Log(files, directory, topic_partition, config, opening.run())


class _Opening:
    """One run of `open_log`, step by step."""

    def __init__(self, files: Files, directory: Path, config: LogConfig, start: Start) -> None:
        self.files = files
        self.directory = directory
        self.config = config
        self.start = start
        self.segments: list[Segment] = []
        self.snapshots: list[int] = []
        self.is_clean = start.is_clean or start.is_scanned
        self.had_producers = False  # whether a snapshot contains producers, even expired ones
        self.producers: Producers | None = None  # the producers at the log end

    def run(self) -> LoadedLog:
        entries = settle(self.files, self.directory)
        self.gaps_end = read_gaps_end(self.files, self.directory, entries)
        self.snapshots = snapshot_offsets(entries)
        odd = self._find_segments(entries)
        self.epochs = self._load_epochs()
        known = self.epochs.entries
        for i, segment in enumerate(self.segments):
            # From the first unsafe segment on, the scan rebuilds the indexes anyway.
            if segment in odd and (self.is_clean or i < self._first_unsafe()):
                self._rebuild_damaged(i)
        if not self.is_clean:
            self._recover()
        end_offset = self._end_offset()
        start_offset = self.start.log_start_offset
        if self.segments:
            start_offset = max(start_offset, self.segments[0].base_offset)
        # None of the remaining records is needed: all are below the log start.
        if end_offset < start_offset:
            self._remove_from(0)
            self.producers = Producers()
            end_offset = start_offset
        # A log always has a segment. The directory is new, or has lost all of its segments.
        if not self.segments:
            end_offset = start_offset
            self.segments.append(Segment.create(self.files, self.directory, end_offset))
        self.epochs.truncate_from_end(end_offset)
        self.epochs.truncate_from_start(start_offset)
        if 0 < start_offset == end_offset:
            self._keep_epoch_of_deleted(known, end_offset)
        snapshot_offset = self._settle_producers(start_offset, end_offset)
        for segment in self.segments:
            segment.release()
        assert self.producers is not None
        return LoadedLog(
            segments=self.segments,
            epochs=self.epochs,
            producers=self.producers,
            producers_end=end_offset if self.had_producers or len(self.producers) else 0,
            log_start_offset=start_offset,
            log_end_offset=end_offset,
            durable=self._durable(end_offset),
            snapshot_offset=snapshot_offset,
            topic_id=settle_topic_id(
                self.files,
                self.directory,
                self.start.topic_id,
                is_empty=not any(segment.size_bytes for segment in self.segments),
            ),
            gaps_end=self.gaps_end,
        )

    def _durable(self, end_offset: int) -> Durable:
        is_whole = self.is_clean and not self.start.is_scanned
        # A child process has scanned the log, but not synced anything.
        recovery_point = end_offset if is_whole else self.start.recovery_point
        recovery_point = min(recovery_point, end_offset)
        below = [each.base_offset for each in self.segments if each.base_offset <= recovery_point]
        return Durable(recovery_point, max(below, default=0), is_whole)

    # --- segments --------------------------------------------------------------------------------

    def _find_segments(self, entries: list[Entry]) -> list[Segment]:
        """Find all segments, and return those with unusable indexes."""
        sizes = {entry.name: entry.size_bytes for entry in entries}
        odd = []
        for name in sizes:
            base, dot, suffix = name.partition(".")
            base_offset = base_offset_in(name)
            if base_offset is None:
                if name.endswith(LOG_SUFFIX):
                    _log.warning("%s is not a segment; ignoring it", self.directory / name)
            elif dot + suffix == LOG_SUFFIX:
                if not self._add_found(base_offset, sizes):
                    odd.append(self.segments[-1])
            # A crash interrupted the removal of a segment, whose log file is always removed first.
            elif dot + suffix in _INDEX_SUFFIXES and base + LOG_SUFFIX not in sizes:
                self.files.remove(self.directory / name)
        return odd

    def _add_found(self, base_offset: int, sizes: dict[str, int]) -> bool:
        """Add a segment, and return whether its indexes look usable, without reading the log."""

        def size(suffix: str) -> int:
            return sizes.get(segment_path(self.directory, base_offset, suffix).name, -1)

        index, time_index = size(OFFSET_INDEX_SUFFIX), size(TIME_INDEX_SUFFIX)
        aborted = max(0, size(ABORTED_INDEX_SUFFIX))
        found = Sizes(size(LOG_SUFFIX), max(0, index), max(0, time_index), aborted)
        segment = Segment(self.files, self.directory, base_offset, found)
        self.segments.append(segment)
        if time_index < 0:
            # As in Kafka, a search by time then reads the whole segment.
            self.files.write(segment.path(TIME_INDEX_SUFFIX), b"")
        return (
            index >= 0
            and index % OFFSET_ENTRY.size == 0
            and found.time_index % TIME_ENTRY.size == 0
            and aborted % ABORTED_ENTRY_BYTES == 0
            and (segment.aborted is None or segment.aborted.is_sound(base_offset))
        )

    def _rebuild_damaged(self, i: int) -> None:
        segment = self.segments[i]
        _log.warning(
            "an index of %s is missing or damaged; rebuilding its indexes from the log",
            segment.path(LOG_SUFFIX),
        )
        # The file contains the epochs of this part, so none are claimed.
        scan = self._scan((), 0)
        scan.rebuild(segment, self._producers_before(i))
        segment.write_out()
        segment.release()

    def _load_epochs(self) -> LeaderEpochs:
        try:
            return LeaderEpochs(self.files, self.directory)
        except CorruptData as error:
            _log.warning("%s; rebuilding it from the log", error)
        epochs = LeaderEpochs(self.files, self.directory, is_lost=True)
        # The scan finds the epochs of this part.
        for segment in self.segments if self.is_clean else self.segments[: self._first_unsafe()]:
            for batch in segment.headers(0):
                if batch.header.partition_leader_epoch > epochs.latest:
                    epochs.assign(batch.header.partition_leader_epoch, batch.header.base_offset)
            segment.release()
        unsaved = epochs.take_unsaved()
        assert unsaved is not None
        epochs.save(unsaved)
        self.files.sync(self.directory)
        epochs.on_saved(unsaved)
        return epochs

    def _end_offset(self) -> int:
        """Return the log end after a clean stop, read from the headers after the last entry."""
        if not self.segments:
            return 0
        last = self.segments[-1]
        end = self._peek_end(last)
        if end is None:
            # The file contradicts the clean-shutdown marker. Trust the file.
            self.is_clean = False
            self._recover()
            return self._end_offset()
        return end

    def _peek_end(self, segment: Segment) -> int | None:
        """Return the end of the last segment; None if its batches do not end with its file."""
        entry = segment.offset_index.last
        position = entry[1] if entry else 0
        end_offset = sound_end = segment.base_offset
        is_sound = True
        # The index extends beyond its log: this file does not date from the clean stop.
        if position > 0 and position >= segment.size_bytes:
            return None
        try:
            for found in segment.headers(position):
                base_offset, last_offset = found.header.base_offset, found.header.last_offset
                # The index entry contains this batch's last offset, so compare the two.
                if entry is not None and found.position == entry[1]:
                    is_sound = last_offset == segment.base_offset + entry[0]
                # Either compaction or damage may have caused this gap.
                elif base_offset != end_offset:
                    is_sound = False
                end_offset = last_offset + 1
                position = found.position + found.header.size_bytes
                sound_end = end_offset if is_sound else sound_end
        except CorruptData:
            return None
        if position != segment.size_bytes:
            return None
        if not is_sound and self.start.is_clean and self.start.recovery_point >= sound_end:
            # Compaction or a damaged offset caused a gap. No checksum covers an offset, and a
            # damaged one causes an error for readers. The clean stop recorded where the log ended.
            return self.start.recovery_point or end_offset
        return end_offset

    def _remove_from(self, i: int) -> None:
        """Delete the segments from the i-th on, last to first, so that no gap is ever visible."""
        if i >= len(self.segments):
            return
        for segment in reversed(self.segments[i:]):
            segment.release()
            for suffix in (LOG_SUFFIX, *_INDEX_SUFFIXES):
                self.files.remove(segment.path(suffix))
        del self.segments[i:]
        self.files.sync(self.directory)

    # --- after a crash ---------------------------------------------------------------------------

    def _recover(self) -> None:
        """Scan the part that may not be durable, and truncate the log at the first bad batch."""
        first = self._first_unsafe()
        self.producers = self._producers_before(first)
        if not self.segments:
            return
        begin_offset = self.segments[first].base_offset
        scan = self._scan(self.epochs.entries, begin_offset)
        self.epochs.truncate_from_end(begin_offset)
        for i, segment in enumerate(self.segments[first:], first):
            end, end_offset = scan.rebuild(segment, self.producers, self._bound(i))
            # ST-8: the log ends before its first bad batch, so remove everything after it.
            if end < segment.size_bytes:
                _log.warning(
                    "Corruption found in %s at byte %d: truncating %s and %s",
                    segment.path(LOG_SUFFIX),
                    end,
                    counted(segment.size_bytes - end, "byte"),
                    counted(len(self.segments) - i - 1, "later segment"),
                )
                self._remove_from(i + 1)
                segment.cut(end)
                break
            # This segment's batches are complete, but some later ones never reached the disk.
            if self._is_hole(end_offset, i + 1):
                _log.warning(
                    "%s ends at offset %d because its end was lost: truncating %s",
                    segment.path(LOG_SUFFIX),
                    end_offset,
                    counted(len(self.segments) - i - 1, "later segment"),
                )
                self._remove_from(i + 1)
                break
            if i + 1 < len(self.segments):
                segment.write_out()
                segment.release()

    def _scan(self, known: tuple[EpochEntry, ...], begin_offset: int) -> Scan:
        claimed = tuple(each for each in known if each.start_offset >= begin_offset)
        interval_bytes = self.config.index_interval_bytes
        return Scan(self.epochs, claimed, begin_offset, interval_bytes, self.start.loading)

    def _bound(self, i: int) -> int:
        """Return an upper bound for the offsets in the i-th segment."""
        return self.segments[i + 1].base_offset if i + 1 < len(self.segments) else NO_END

    def _is_hole(self, end_offset: int, i: int) -> bool:
        """Return whether records were lost between this offset and the i-th segment."""
        # No gap proves a loss in a log that Kafka wrote, which may have gaps anywhere.
        if i == len(self.segments) or self.gaps_end == UNKNOWN:
            return False
        return self.segments[i].base_offset > max(end_offset, self.gaps_end)

    def _first_unsafe(self) -> int:
        """Return the index of the first segment that extends above the recovery point."""
        bases = [segment.base_offset for segment in self.segments]
        return max(0, bisect_right(bases, self.start.recovery_point) - 1)

    def _keep_epoch_of_deleted(self, known: tuple[EpochEntry, ...], end_offset: int) -> None:
        """Keep the last record's epoch in a log that is empty because its records were deleted.

        The records were committed. Without the epoch, a log that lacks them would count as the
        longer one (`controller.lost_log_ends.largest`).
        """
        if not self.epochs.entries:
            for entry in reversed(known):
                if entry.start_offset <= end_offset:
                    self.epochs.assign(entry.epoch, end_offset)
                    return

    # --- producers -------------------------------------------------------------------------------

    def _producers_before(self, i: int) -> Producers:
        """Return the producers at the start of the i-th segment."""
        if i >= len(self.segments):
            return Producers()
        base_offset = self.segments[i].base_offset
        producers, offset = self._from_snapshot(base_offset) or (Producers(), 0)
        replay(producers, self.segments[:i], offset, base_offset)
        return producers

    def _from_snapshot(self, end_offset: int) -> tuple[Producers, int] | None:
        """Return the newest snapshot at or below the offset, without expired producers."""
        offsets = [offset for offset in self.snapshots if offset <= end_offset]
        found = load_newest_snapshot(self.files, self.directory, offsets)
        if found is not None:
            self.had_producers |= len(found[0]) > 0
            found[0].expire(self.start.now_ms - self.start.producer_expiration_ms)
        return found

    def _settle_producers(self, start_offset: int, end_offset: int) -> int:
        """Find the producers at the log end, and return the offset of their newest snapshot."""
        self._prune_snapshots(end_offset)
        # Without a scan, the producers come from the newest snapshot and the batches after it.
        if self.producers is None:
            found = self._from_snapshot(end_offset)
            # Do not scan a log without snapshots: it is empty or from an old Kafka version.
            # Otherwise, all snapshots are damaged.
            begin_offset = self.segments[0].base_offset if self.snapshots else end_offset
            self.producers, offset = found or (Producers(), begin_offset)
            replay(self.producers, self.segments, offset, end_offset)
            return offset
        offset = max(self.snapshots, default=start_offset)
        # As in Kafka, take a snapshot at the log end for the next start.
        if self.snapshots or offset < end_offset:
            write_snapshot(self.files, self.directory, end_offset, self.producers)
            return end_offset
        return offset

    def _prune_snapshots(self, end_offset: int) -> None:
        """Keep the segments' snapshots and the last one. Remove those beyond the log end."""
        possible = [offset for offset in self.snapshots if offset <= end_offset]
        wanted = {segment.base_offset for segment in self.segments} | set(possible[-1:])
        for offset in self.snapshots:
            if offset > end_offset or offset not in wanted:
                self.files.remove(snapshot_path(self.directory, offset))
        self.snapshots = [offset for offset in possible if offset in wanted]
