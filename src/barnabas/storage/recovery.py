"""Opens a log, and recovers it after a crash by scanning its segments (ST-8).

After a clean shutdown, all files are complete. Only the headers after the last index entry are read
in order to find the log end. After a crash, the segments from the recovery point on are scanned
batch by batch. The log ends before the first batch that is incomplete or has a wrong checksum. It
also ends where a segment ends below the start of the next one, unless compaction may have caused
this gap (`gaps`). Everything after the log end is removed, and the indexes, aborted transactions,
epochs and producers are rebuilt. Everything below the recovery point is durable and is not read.

If a file is missing or damaged but can be derived from the log, it is rebuilt, and the broker logs
one line about it.

The process may die again during recovery. It therefore never leaves files that a second recovery
could misinterpret. A truncated segment looks complete, so all later segments are removed before it
is truncated, from the last one to the first.
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
    """Open the log in a partition's directory, which must already exist. Raises OSError or
    CorruptData.
    """
    opening = _Opening(files, directory, config, start)
    return Log(files, directory, topic_partition, config, opening.run())


class _Opening:
    """The state of one call of `open_log`."""

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
            # The scan rebuilds the indexes from the first unsafe segment on, so nothing needs to be
            # done for them here.
            if segment in odd and (self.is_clean or i < self._first_unsafe()):
                self._rebuild_damaged(i)
        if not self.is_clean:
            self._recover()
        end_offset = self._end_offset()
        start_offset = self.start.log_start_offset
        if self.segments:
            start_offset = max(start_offset, self.segments[0].base_offset)
        # All remaining records are below the log start, so none of them is needed.
        if end_offset < start_offset:
            self._remove_from(0)
            self.producers = Producers()
            end_offset = start_offset
        # Either the directory is new or it has lost all of its segments. A log must have at least
        # one.
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
        # A child process has scanned the log but has not synced any file.
        recovery_point = end_offset if is_whole else self.start.recovery_point
        recovery_point = min(recovery_point, end_offset)
        below = [each.base_offset for each in self.segments if each.base_offset <= recovery_point]
        return Durable(recovery_point, max(below, default=0), is_whole)

    # --- segments --------------------------------------------------------------------------------

    def _find_segments(self, entries: list[Entry]) -> list[Segment]:
        """Find all segments, and return those whose indexes cannot be used."""
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
            # A crash has interrupted the removal of a segment. The log file of a segment is always
            # removed first.
            elif dot + suffix in _INDEX_SUFFIXES and base + LOG_SUFFIX not in sizes:
                self.files.remove(self.directory / name)
        return odd

    def _add_found(self, base_offset: int, sizes: dict[str, int]) -> bool:
        """Add a segment, and return whether its indexes look usable. This does not read the log
        file.
        """

        def size(suffix: str) -> int:
            return sizes.get(segment_path(self.directory, base_offset, suffix).name, -1)

        index, time_index = size(OFFSET_INDEX_SUFFIX), size(TIME_INDEX_SUFFIX)
        aborted = max(0, size(ABORTED_INDEX_SUFFIX))
        found = Sizes(size(LOG_SUFFIX), max(0, index), max(0, time_index), aborted)
        segment = Segment(self.files, self.directory, base_offset, found)
        self.segments.append(segment)
        if time_index < 0:
            # As in Kafka, searching by time then reads the whole segment.
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
        # The epochs of this part of the log are in the file, so the scan need not look for claimed
        # ones.
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
        # The scan finds the epochs in this part of the log.
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
        """Return the log end after a clean shutdown. Only the headers after the last index entry
        are read.
        """
        if not self.segments:
            return 0
        last = self.segments[-1]
        end = self._peek_end(last)
        if end is None:
            # The file contradicts the clean shutdown marker. Trust the file rather than the marker.
            self.is_clean = False
            self._recover()
            return self._end_offset()
        return end

    def _peek_end(self, segment: Segment) -> int | None:
        """Return the end offset of the last segment, or None if its last batch does not end at the
        end of the file.
        """
        entry = segment.offset_index.last
        position = entry[1] if entry else 0
        end_offset = sound_end = segment.base_offset
        is_sound = True
        # The index extends beyond the end of the log file, so this is not the file from the clean
        # shutdown.
        if position > 0 and position >= segment.size_bytes:
            return None
        try:
            for found in segment.headers(position):
                base_offset, last_offset = found.header.base_offset, found.header.last_offset
                # The index entry contains the last offset of this batch, so the two must be equal.
                if entry is not None and found.position == entry[1]:
                    is_sound = last_offset == segment.base_offset + entry[0]
                # This gap was caused either by compaction or by damage.
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
            # The gap was caused by compaction or by a damaged offset. Offsets are not covered by a
            # checksum, and readers get an error if one is damaged. The end of the log was recorded
            # at the clean shutdown.
            return self.start.recovery_point or end_offset
        return end_offset

    def _remove_from(self, i: int) -> None:
        """Delete segment i and all later ones, starting with the last, so that there is never a gap
        between segments.
        """
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
        """Scan the part of the log that may not be durable, and truncate the log at the first
        invalid batch.
        """
        first = self._first_unsafe()
        self.producers = self._producers_before(first)
        if not self.segments:
            return
        begin_offset = self.segments[first].base_offset
        scan = self._scan(self.epochs.entries, begin_offset)
        self.epochs.truncate_from_end(begin_offset)
        for i, segment in enumerate(self.segments[first:], first):
            end, end_offset = scan.rebuild(segment, self.producers, self._bound(i))
            # ST-8: the log ends before the first invalid batch, so remove everything after that
            # point.
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
            # The batches in this segment are complete, but some of those after them have never
            # reached the disk.
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
        """Return an upper bound for the offsets in segment i."""
        return self.segments[i + 1].base_offset if i + 1 < len(self.segments) else NO_END

    def _is_hole(self, end_offset: int, i: int) -> bool:
        """Return whether records are missing between this offset and the start of segment i."""
        # If Kafka has written the log, it may have gaps anywhere, so a gap does not prove that
        # records were lost.
        if i == len(self.segments) or self.gaps_end == UNKNOWN:
            return False
        return self.segments[i].base_offset > max(end_offset, self.gaps_end)

    def _first_unsafe(self) -> int:
        """Return the index of the first segment that ends above the recovery point."""
        bases = [segment.base_offset for segment in self.segments]
        return max(0, bisect_right(bases, self.start.recovery_point) - 1)

    def _keep_epoch_of_deleted(self, known: tuple[EpochEntry, ...], end_offset: int) -> None:
        """Keep the epoch of the last record if the log is empty because its records were deleted.

        These records were committed. Without their epoch, a log that never had them would be
        considered longer than this log (`controller.lost_log_ends.largest`).
        """
        if not self.epochs.entries:
            for entry in reversed(known):
                if entry.start_offset <= end_offset:
                    self.epochs.assign(entry.epoch, end_offset)
                    return

    # --- producers -------------------------------------------------------------------------------

    def _producers_before(self, i: int) -> Producers:
        """Return the producers as of the start of segment i."""
        if i >= len(self.segments):
            return Producers()
        base_offset = self.segments[i].base_offset
        producers, offset = self._from_snapshot(base_offset) or (Producers(), 0)
        replay(producers, self.segments[:i], offset, base_offset)
        return producers

    def _from_snapshot(self, end_offset: int) -> tuple[Producers, int] | None:
        """Return the newest snapshot that is not above the offset, without the producers that have
        expired.
        """
        offsets = [offset for offset in self.snapshots if offset <= end_offset]
        found = load_newest_snapshot(self.files, self.directory, offsets)
        if found is not None:
            self.had_producers |= len(found[0]) > 0
            found[0].expire(self.start.now_ms - self.start.producer_expiration_ms)
        return found

    def _settle_producers(self, start_offset: int, end_offset: int) -> int:
        """Find the producers at the log end, and return the offset of their newest snapshot."""
        self._prune_snapshots(end_offset)
        # If no segment was scanned, the producers are read from the newest snapshot and the batches
        # after it.
        if self.producers is None:
            found = self._from_snapshot(end_offset)
            # If the log has no snapshots, do not scan it, because it is empty or was written by an
            # old version of Kafka. If it has snapshots, all of them are damaged.
            begin_offset = self.segments[0].base_offset if self.snapshots else end_offset
            self.producers, offset = found or (Producers(), begin_offset)
            replay(self.producers, self.segments, offset, end_offset)
            return offset
        offset = max(self.snapshots, default=start_offset)
        # As in Kafka, write a snapshot at the log end, from which the next start can continue.
        if self.snapshots or offset < end_offset:
            write_snapshot(self.files, self.directory, end_offset, self.producers)
            return end_offset
        return offset

    def _prune_snapshots(self, end_offset: int) -> None:
        """Keep the snapshots at segment starts and the newest one. Remove all snapshots above the
        log end.
        """
        possible = [offset for offset in self.snapshots if offset <= end_offset]
        wanted = {segment.base_offset for segment in self.segments} | set(possible[-1:])
        for offset in self.snapshots:
            if offset > end_offset or offset not in wanted:
                self.files.remove(snapshot_path(self.directory, offset))
        self.snapshots = [offset for offset in possible if offset in wanted]
