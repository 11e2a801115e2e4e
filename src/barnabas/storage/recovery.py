"""Opening a log: after a clean stop by looking at its end, after any other by reading it (ST-8).

After a clean stop every file is what its name says, and only the headers behind the last index
entry are read, to learn the log end. After a crash the segments from the recovery point on are
scanned batch by batch: the first that is not whole, or fails its checksum, ends the log. Everything
behind it goes, the indexes are made anew, and so are epochs and producers. What lies below the
recovery point was made durable before and is not looked at.

A process may die again in the middle of this. Nothing is written that a second run would mistake
for its own result: later segments are removed, from the last one on, before the damaged one is cut,
for a cut segment looks whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.config import LogConfig
from barnabas.errors import CorruptData
from barnabas.records.batch import HEADER_BYTES, read_header, verify_crc
from barnabas.records.control import read_marker
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.files import Entry, Files
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.leftovers import settle
from barnabas.storage.log import Contents, Log
from barnabas.storage.partition_metadata import read_topic_id
from barnabas.storage.producers import Producers
from barnabas.storage.segment import (
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    Located,
    Segment,
    Sizes,
    segment_path,
)
from barnabas.storage.snapshot import SUFFIX as SNAPSHOT_SUFFIX
from barnabas.storage.snapshot import decode_snapshot, snapshot_path, write_snapshot
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

PRODUCER_EXPIRATION_MS = 24 * 60 * 60 * 1000

_SCAN_BYTES = 256 * 1024
_INDEX_SUFFIXES = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, ".txnindex")


class Start(NamedTuple):
    """What is known about a log before it is opened."""

    is_clean: bool
    """The last broker stopped in order."""
    now_ms: int = 0
    """Producers that were idle for longer before it are forgotten."""
    recovery_point: int = 0
    log_start_offset: int = 0
    producer_expiration_ms: int = PRODUCER_EXPIRATION_MS


def open_log(
    files: Files,
    directory: Path,
    topic_partition: TopicPartition,
    config: LogConfig,
    start: Start,
) -> Log:
    """Open a partition's directory, which exists; OSError, CorruptData."""
    opening = _Opening(files, directory, config, start)
    return Log(files, directory, topic_partition, config, opening.run())


class _Opening:
    """One run of the above, step by step."""

    def __init__(self, files: Files, directory: Path, config: LogConfig, start: Start) -> None:
        self.files = files
        self.directory = directory
        self.config = config
        self.start = start
        self.segments: list[Segment] = []
        self.epochs = LeaderEpochs(files, directory)
        self.is_clean = start.is_clean

    def run(self) -> Contents:
        entries = settle(self.files, self.directory)
        known_epochs = self.epochs.entries
        self._find_segments(entries)
        if not self.is_clean:
            self._recover()
        end_offset = self._end_offset()
        start_offset = self.start.log_start_offset
        if self.segments:
            start_offset = max(start_offset, self.segments[0].base_offset)
        if end_offset < start_offset:
            self._remove_from(0)
            end_offset = start_offset
        if not self.segments:
            end_offset = start_offset
            self._add_first(end_offset)
        if self.epochs.entries != known_epochs:
            self.epochs.save()
        self.epochs.truncate_from_end(end_offset)
        self.epochs.truncate_from_start(start_offset)
        producers, snapshot_offset = self._producers(entries, start_offset, end_offset)
        for segment in self.segments:
            segment.release()
        recovery_point = end_offset if self.is_clean else self.start.recovery_point
        return Contents(
            segments=self.segments,
            epochs=self.epochs,
            producers=producers,
            log_start_offset=start_offset,
            log_end_offset=end_offset,
            recovery_point=min(recovery_point, end_offset),
            snapshot_offset=snapshot_offset,
            topic_id=read_topic_id(self.files, self.directory),
        )

    # --- segments --------------------------------------------------------------------------------

    def _find_segments(self, entries: list[Entry]) -> None:
        sizes = {entry.name: entry.size_bytes for entry in entries}
        for name in sizes:
            base, dot, suffix = name.partition(".")
            if dot + suffix == LOG_SUFFIX and base.isdecimal():
                self._add_found(int(base), sizes)
            elif dot + suffix in _INDEX_SUFFIXES and base + LOG_SUFFIX not in sizes:
                self.files.remove(self.directory / name)

    def _add_found(self, base_offset: int, sizes: dict[str, int]) -> None:
        def size(suffix: str) -> int:
            return sizes.get(segment_path(self.directory, base_offset, suffix).name, -1)

        index, time_index = size(OFFSET_INDEX_SUFFIX), size(TIME_INDEX_SUFFIX)
        found = Sizes(size(LOG_SUFFIX), max(0, index), max(0, time_index))
        segment = Segment(self.files, self.directory, base_offset, found)
        self.segments.append(segment)
        if time_index < 0:
            # Kafka does not notice either: a search by time then reads the whole segment.
            self.files.write(segment.path(TIME_INDEX_SUFFIX), b"")
        if index < 0 or index % OFFSET_ENTRY.size or found.time_index % TIME_ENTRY.size:
            self._rebuild(segment)
            segment.write_out()
            segment.release()

    def _add_first(self, base_offset: int) -> None:
        self.segments.append(Segment.create(self.files, self.directory, base_offset))

    def _end_offset(self) -> int:
        """The log end, after a clean stop from the few headers behind the last index entry."""
        if not self.segments:
            return 0
        last = self.segments[-1]
        end = self._peek_end(last)
        if end is None:
            # The marker said clean and the file says otherwise: believe the file.
            self.is_clean = False
            self._recover()
            return self._end_offset()
        return end

    def _peek_end(self, segment: Segment) -> int | None:
        entry = segment.offset_index.last
        position = entry[1] if entry else 0
        end_offset = segment.base_offset
        if position > 0 and position >= segment.size_bytes:
            return None
        try:
            for found in segment.headers(position):
                end_offset = found.header.last_offset + 1
                position = found.position + found.header.size_bytes
        except CorruptData:
            return None
        return end_offset if position == segment.size_bytes else None

    def _remove_from(self, i: int) -> None:
        """Delete the segments from the i-th on, the last one first: no gap may ever be seen."""
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
        """Scan what may not have reached the disk; cut the log at the first bad batch."""
        for i, segment in enumerate(self.segments):
            following = self.segments[i + 1 : i + 2]
            if following and following[0].base_offset <= self.start.recovery_point:
                continue
            end = self._rebuild(segment)
            if end < segment.size_bytes:
                _log.warning(
                    "%s is not whole from byte %d on: cutting %d bytes and %d later segments",
                    segment.path(LOG_SUFFIX),
                    end,
                    segment.size_bytes - end,
                    len(self.segments) - i - 1,
                )
                self._remove_from(i + 1)
                segment.cut(end)
                break
            if following:
                segment.write_out()
                segment.release()

    def _rebuild(self, segment: Segment) -> int:
        """Make the segment's indexes anew; returns where its last valid batch ends.

        The rhythm of the entries is Kafka's for this case, other than that of appends.
        """
        segment.forget_indexes()
        next_offset = segment.base_offset
        end = last_indexed = 0
        for position, header in _whole_batches(segment):
            last_offset = header.last_offset
            if header.base_offset < next_offset or not segment.fits(last_offset):
                break
            if header.max_timestamp > segment.max_timestamp:
                segment.learn_max_timestamp(header.max_timestamp, last_offset)
            if position - last_indexed > self.config.index_interval_bytes:
                segment.offset_index.append(last_offset - segment.base_offset, position)
                segment.index_time()
                last_indexed = position
            if header.partition_leader_epoch > self.epochs.latest:
                self.epochs.note(header.partition_leader_epoch, header.base_offset)
            next_offset = last_offset + 1
            end = position + header.size_bytes
        segment.index_time()
        return end

    # --- producers -------------------------------------------------------------------------------

    def _producers(
        self, entries: list[Entry], start_offset: int, end_offset: int
    ) -> tuple[Producers, int]:
        """The state at the log end, and up to which offset a snapshot holds it."""
        offsets = self._prune_snapshots(entries, end_offset)
        producers, offset = self._newest_snapshot(offsets)
        if producers is None:
            producers, offset = Producers(), start_offset
            if self.is_clean:
                # A log without batches, or of a Kafka that wrote no snapshots; either way a scan is
                # not worth what it would find.
                return producers, end_offset
        producers.expire(self.start.now_ms - self.start.producer_expiration_ms)
        self._replay(producers, offset)
        if not self.is_clean and offset < end_offset:
            write_snapshot(self.files, self.directory, end_offset, producers)
            offset = end_offset
        return producers, offset

    def _prune_snapshots(self, entries: list[Entry], end_offset: int) -> list[int]:
        """Keep those of segments and the last one; those beyond the log end are of a lost past."""
        offsets = sorted(
            int(entry.name.removesuffix(SNAPSHOT_SUFFIX))
            for entry in entries
            if entry.name.endswith(SNAPSHOT_SUFFIX)
            and entry.name.removesuffix(SNAPSHOT_SUFFIX).isdecimal()
        )
        possible = [offset for offset in offsets if offset <= end_offset]
        wanted = {segment.base_offset for segment in self.segments} | set(possible[-1:])
        kept = [offset for offset in possible if offset in wanted]
        for offset in offsets:
            if offset not in kept:
                self.files.remove(snapshot_path(self.directory, offset))
        return kept

    def _newest_snapshot(self, offsets: list[int]) -> tuple[Producers | None, int]:
        for offset in reversed(offsets):
            path = snapshot_path(self.directory, offset)
            try:
                return decode_snapshot(self.files.read(path)), offset
            except CorruptData:
                self.files.remove(path)  # an older one and the log say the same
        return None, 0

    def _replay(self, producers: Producers, offset: int) -> None:
        """Apply the batches from `offset` on."""
        for segment, following in zip(self.segments, [*self.segments[1:], None], strict=True):
            if following is not None and following.base_offset <= offset:
                continue
            position = segment.locate(offset)
            for batch in segment.headers(position) if position is not None else ():
                if batch.header.producer_id >= 0:
                    _apply(producers, segment, batch)


def _apply(producers: Producers, segment: Segment, batch: Located) -> None:
    header = batch.header
    if not header.is_control:
        if header.base_sequence >= 0:
            producers.apply(header, header.base_offset, header.max_timestamp)
        return
    raw = segment.read_batch(batch.position, header.size_bytes)
    marker = read_marker(raw, 0, header)
    if marker is not None:
        producers.apply_marker(header.producer_id, header.producer_epoch, marker)


def _whole_batches(segment: Segment) -> Iterator[Located]:
    """The batches of a segment up to the first that is cut or fails its checksum."""
    file = segment.open_file()
    size = segment.size_bytes
    window = b""
    begin = position = 0  # the window's place in the file, and the next batch's
    while position < size:
        at = position - begin
        if len(window) - at < HEADER_BYTES:
            window, begin, at = file.pread(_SCAN_BYTES, position), position, 0
        try:
            header = read_header(window, at)
        except CorruptData:
            return
        if position + header.size_bytes > size:
            return
        if at + header.size_bytes > len(window):
            window = file.pread(max(_SCAN_BYTES, header.size_bytes), position)
            begin, at = position, 0
        if not verify_crc(window, at, header):
            return
        yield Located(position, header)
        position += header.size_bytes
