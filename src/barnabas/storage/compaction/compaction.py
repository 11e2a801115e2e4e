"""Compacts a log in one pass, which keeps only the latest record of each key and does not change
offsets (ST-7).

    1   from the first dirty offset on, the newest offset of each key is stored in the map
    2   every closed segment up to the end of the map is read; if some of its records are obsolete
        according to the map, it is rewritten without them; small segments are merged

A pass does not change the log. It only reads files, and writes files that have the suffix
`.cleaned`. It is a generator, so the caller can do other work between its steps and can close it at
any time. While a group of segments is being written, the previous group is swapped into the log. If
a pass ends early, part of the log has therefore been cleaned, and the next pass starts at the same
offset.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

from barnabas.errors import CorruptData
from barnabas.records.batch import read_header
from barnabas.records.control_records import read_marker
from barnabas.storage.compaction.job import (
    Event,
    Finished,
    Job,
    Producers,
    Progress,
    Replacement,
    Source,
    group_sources,
)
from barnabas.storage.compaction.key_map import KeyMap
from barnabas.storage.compaction.stored_batches import Stored, stored_batches
from barnabas.storage.compaction.survival import Survival, add_keys
from barnabas.storage.compaction.transactions import Transactions
from barnabas.storage.files import Files
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY
from barnabas.storage.leftovers import CLEANED, discard_cleaned
from barnabas.storage.segment import (
    ABORTED_INDEX_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    Segment,
    Sizes,
)
from barnabas.storage.transaction_index import ABORTED_ENTRY_BYTES, Aborted


class Compaction:
    """Runs one pass over a log. Call `run` only once."""

    __slots__ = (
        "_bytes_kept",
        "_bytes_read",
        "_cleaned",
        "_directory",
        "_files",
        "_job",
        "_key_map",
        "_moved_bytes",
        "_producers",
        "_records_read",
    )

    def __init__(self, files: Files, directory: Path, job: Job, producers: Producers) -> None:
        self._files = files
        self._directory = directory
        self._job = job
        self._producers = producers
        self._key_map = KeyMap(
            job.buffer_bytes, job.first_dirty_offset, load_factor=job.load_factor
        )
        self._cleaned: CleanedSegment | None = None
        self._moved_bytes = 0
        self._bytes_read = self._bytes_kept = self._records_read = 0

    def run(self) -> Iterator[Event]:
        """Run the pass. If it raises CorruptData or OSError, the log is unchanged."""
        # An earlier pass may have left files behind when its process was killed.
        discard_cleaned(self._files, self._directory)
        aborted = self._aborted_transactions()
        yield from self._map_keys(aborted)
        self._key_map.finish()
        end_offset = self._key_map.latest_offset + 1
        survival = Survival(
            self._key_map,
            Transactions(aborted),
            self._producers,
            self._job.now_ms,
            self._job.delete_retention_ms,
        )
        try:
            for group in group_sources(self._job, end_offset):
                yield from self._clean(group, survival)
        finally:
            if self._cleaned is not None:
                self._cleaned.remove()
        yield Finished(
            end_offset,
            self._bytes_read,
            self._bytes_kept,
            self._records_read,
            survival.records_kept,
            survival.unopened,
        )

    def _segment(self, source: Source) -> Segment:
        return Segment(self._files, self._directory, source.base_offset, source.sizes)

    def _batches(self, segment: Segment, source: Source, position: int = 0) -> Iterator[Stored]:
        return stored_batches(segment, position, self._job.read_bytes, source.end_offset)

    def _aborted_transactions(self) -> list[Aborted]:
        """Return all aborted transactions that have data in the sources, even if their markers are
        in later segments.
        """
        found = list(self._job.aborted)
        for source in self._job.sources:
            segment = self._segment(source)
            if segment.aborted is not None:
                found += segment.aborted.entries(0, len(segment.aborted))
            segment.release()
        return found

    def _count_moved(self, size_bytes: int) -> Iterator[Progress]:
        self._moved_bytes += size_bytes
        if self._moved_bytes >= self._job.read_bytes:
            if self._cleaned is not None:
                self._cleaned.write_staged()
            yield Progress(self._moved_bytes)
            self._moved_bytes = 0

    # --- the keys --------------------------------------------------------------------------------

    def _map_keys(self, aborted: Sequence[Aborted]) -> Iterator[Progress]:
        first_offset = self._job.first_dirty_offset
        transactions = Transactions(each for each in aborted if each.last_offset >= first_offset)
        for source in self._job.sources:
            # A clean segment cannot contain a newer record of a key than the dirty part of the log.
            if source.end_offset > first_offset:
                if not (yield from self._map_source(source, transactions)):
                    return
                self._key_map.latest_offset = source.end_offset - 1

    def _map_source(
        self, source: Source, transactions: Transactions
    ) -> Generator[Progress, None, bool]:
        """Add the keys of a source to the map. Returns False if the map had no room for all of
        them.
        """
        first_offset, key_map = self._job.first_dirty_offset, self._key_map
        segment = self._segment(source)
        position = segment.index_position(first_offset) if first_offset > source.base_offset else 0
        try:
            for stored in self._batches(segment, source, position):
                header = stored.header
                yield from self._count_moved(header.size_bytes)
                if header.is_control:
                    transactions.end(header, read_marker(stored.data, stored.at, header))
                # If a record was aborted, older records with the same key are still valid.
                elif not transactions.is_aborted(header) and header.last_offset >= first_offset:
                    # The next pass starts at this batch.
                    if not key_map.has_room(header):
                        return False
                    add_keys(stored, key_map)
                key_map.latest_offset = max(key_map.latest_offset, header.last_offset)
        finally:
            segment.release()
        return True

    # --- cleaning ------------------------------------------------------------------------------

    def _clean(self, group: Sequence[Source], survival: Survival) -> Iterator[Event]:
        """Merge several segments into one new segment.

        A single segment is not rewritten before its first change. If nothing changes, as is common
        in segments that were cleaned before, it is not rewritten at all.
        """
        rewritten = self._begin(group[0]) if len(group) > 1 else None
        indexed: list[Aborted] = []
        for source in group:
            segment = self._segment(source)
            try:
                for stored in self._batches(segment, source):
                    kept = self._look(stored, survival)
                    # This is the first change, so first copy everything before it in this segment.
                    if rewritten is None and kept != stored.raw:
                        rewritten = self._begin(source)
                        yield from self._copy(rewritten, source, stored.header.base_offset)
                    if rewritten is not None and kept is not None:
                        self._append(rewritten, segment, kept)
                    if survival.to_index is not None:
                        indexed.append(survival.to_index)
                    written = 0 if rewritten is None or kept is None else len(kept)
                    yield from self._count_moved(stored.header.size_bytes + written)
            finally:
                segment.release()
        if rewritten is not None:
            # Only now is it certain that there is a new segment, whose index of aborted
            # transactions replaces the old ones.
            for aborted in indexed:
                rewritten.index_aborted(aborted)
            sizes = rewritten.finish()
            self._cleaned = None
            yield Replacement(tuple(source.base_offset for source in group), sizes)

    def _begin(self, first: Source) -> CleanedSegment:
        self._cleaned = CleanedSegment.create(self._files, self._directory, first.base_offset)
        return self._cleaned

    def _look(self, stored: Stored, survival: Survival) -> bytes | None:
        """Count a batch and return the part of it to keep, or None if nothing is kept."""
        self._bytes_read += stored.header.size_bytes
        self._records_read += max(1, stored.header.record_count)
        kept = survival.of(stored)
        self._bytes_kept += 0 if kept is None else len(kept)
        return kept

    def _copy(self, cleaned: CleanedSegment, source: Source, end_offset: int) -> Iterator[Event]:
        """Copy the batches below an offset unchanged."""
        segment = self._segment(source)
        for stored in self._batches(segment, source):
            if stored.header.base_offset >= end_offset:
                break
            self._append(cleaned, segment, stored.raw)
            yield from self._count_moved(2 * stored.header.size_bytes)
        segment.release()

    def _append(self, cleaned: CleanedSegment, segment: Segment, kept: bytes) -> None:
        written = read_header(kept)
        # The offsets of a group fit into the index if all of its segments are intact, so one of
        # them must be damaged.
        if not cleaned.fits(written.last_offset):
            raise CorruptData(
                f"{segment.path(LOG_SUFFIX)} reaches to offset {written.last_offset}, which its "
                "index cannot hold"
            )
        cleaned.append(
            kept,
            written.base_offset,
            written.last_offset,
            written.max_timestamp,
            self._job.index_interval_bytes,
        )


class CleanedSegment(Segment):
    """A segment that is written by a pass. Its files have the suffix `.cleaned` until they are
    swapped in.
    """

    __slots__ = ()

    @classmethod
    def create(cls, files: Files, directory: Path, base_offset: int) -> CleanedSegment:
        """Create the segment in new files.

        A cleaner whose broker was killed may still be writing to the old files.
        """
        segment = cls(files, directory, base_offset, Sizes(0, 0, 0))
        segment.remove()
        for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            files.write(segment.path(suffix), b"")
        return segment

    def path(self, suffix: str) -> Path:
        path = super().path(suffix)
        return path.with_name(path.name + CLEANED)

    def finish(self) -> Sizes:
        """Write and sync all files of the segment, and return their sizes."""
        self.write_out()
        for path in self.paths():
            self._files.sync(path)
        self.release()
        return Sizes(
            self.size_bytes,
            len(self.offset_index) * OFFSET_ENTRY.size,
            len(self.time_index) * TIME_ENTRY.size,
            0 if self.aborted is None else len(self.aborted) * ABORTED_ENTRY_BYTES,
        )

    def remove(self) -> None:
        """Remove all files of the segment."""
        self.release()
        for suffix in (
            LOG_SUFFIX,
            OFFSET_INDEX_SUFFIX,
            TIME_INDEX_SUFFIX,
            ABORTED_INDEX_SUFFIX,
        ):
            self._files.remove(self.path(suffix))
