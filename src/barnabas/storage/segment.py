"""Implements a segment, which consists of a `.log` file and its indexes.

A segment contains record batches with increasing offsets, starting at `base_offset`. The name of
the file is this offset, written with 20 digits. Offsets count records, whereas positions count
bytes. The index files contain offsets relative to the base offset.

An append first stages the batch, which updates the state of the segment immediately. `write_staged`
then writes all staged batches to the file in one system call. The log calls it before the file is
read.

Invariant: `size_bytes` is the position at which the last whole batch ends, including staged
batches. A segment does not handle roles, epochs or producers, and it does not validate batches.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.batch import HEADER_BYTES, BatchHeader, read_header
from barnabas.storage.files import Bytes, File, Files
from barnabas.storage.index import MAX_RELATIVE_OFFSET, OFFSET_ENTRY, TIME_ENTRY, SparseIndex
from barnabas.storage.transaction_index import ABORTED_ENTRY_BYTES, Aborted, AbortedIndex
from barnabas.types import FileSlice

LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX = ".log", ".index", ".timeindex"
ABORTED_INDEX_SUFFIX = ".txnindex"

_WINDOW_BYTES = 4096  # the size of one read in a scan for headers
_KEPT_MARKS = 16
_HANDFUL = 16

NO_TIMESTAMP = -1
_NAME_DIGITS = 20
_MAX_OFFSET = 2**63 - 1
_NO_OFFSET = -1
_WITH_BASE_OFFSET = 2  # the lowest magic whose header contains the batch's first offset


def segment_path(directory: Path, base_offset: int, suffix: str) -> Path:
    return directory / f"{base_offset:020}{suffix}"


def base_offset_in(name: str) -> int | None:
    """Return the base offset with which the name of a segment file starts, or None if this is
    another kind of file.

    As in Kafka, the number must have twenty digits, although no offset needs more than nineteen.
    """
    digits = name.partition(".")[0]
    if len(digits) != _NAME_DIGITS or not digits.isascii() or not digits.isdecimal():
        return None
    offset = int(digits)
    return offset if offset <= _MAX_OFFSET else None


class Located(NamedTuple):
    """A batch in a segment and its position."""

    position: int
    header: BatchHeader


class DamagedBatch(CorruptData):
    """Raised if the header of a batch in a segment is invalid."""

    def __init__(
        self, path: Path, position: int, cause: CorruptData, offset: int | None = None
    ) -> None:
        super().__init__(f"{path}, byte {position}: {cause}")
        self.position = position
        """The position at which the damaged batch begins."""
        self.offset = offset
        """The offset after the batch before it, or None if the search began with this batch."""


class Segment:
    """A segment of an open log. Its file descriptors are opened when needed and closed later."""

    __slots__ = (
        "_file",
        "_files",
        "_first_timestamp",
        "_marks",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "aborted",
        "base_offset",
        "bytes_since_index",
        "directory",
        "offset_index",
        "size_bytes",
        "staged",
        "time_index",
        "untimed_since_ms",
    )

    def __init__(self, files: Files, directory: Path, base_offset: int, sizes: Sizes) -> None:
        """Open the segment lazily; `sizes` are the trusted sizes of its files."""
        self._files = files
        self.base_offset = base_offset
        self.directory = directory
        self.size_bytes = sizes.log
        self.untimed_since_ms: int | None = None
        """The time at which the first batch was appended if it had no timestamp, otherwise None."""
        self.bytes_since_index = 0  # as in Kafka, this is 0 when a segment is opened
        self.staged: list[Bytes] = []
        """The batches at the end of the segment that have not been written yet."""
        self.offset_index = SparseIndex(
            files,
            self.path(OFFSET_INDEX_SUFFIX),
            OFFSET_ENTRY,
            sizes.offset_index // OFFSET_ENTRY.size,
        )
        self.time_index = SparseIndex(
            files, self.path(TIME_INDEX_SUFFIX), TIME_ENTRY, sizes.time_index // TIME_ENTRY.size
        )
        self.aborted: AbortedIndex | None = None
        """The aborted transactions that end in this segment, or None."""
        if sizes.aborted:
            self.aborted = self._aborted_index(sizes.aborted // ABORTED_ENTRY_BYTES)
        self._file: File | None = None
        self._first_timestamp: int | None = None
        self._max_timestamp: int | None = None
        self._offset_of_max_timestamp = base_offset
        # The positions of batches by base offset, taken from the latest appends and reads. They
        # save a system call for a reader that follows the log.
        self._marks: dict[int, int] = {}

    @classmethod
    def create(cls, files: Files, directory: Path, base_offset: int) -> Segment:
        """Create an empty segment. Files that a crash left under the same names are truncated."""
        paths = [
            segment_path(directory, base_offset, suffix)
            for suffix in (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
        ]
        try:
            for path in paths:
                files.write(path, b"")
        except OSError:
            # The log can go on without this segment, so remove its files.
            for path in paths:
                files.remove(path)
            raise
        return cls(files, directory, base_offset, Sizes(0, 0, 0))

    def path(self, suffix: str) -> Path:
        return segment_path(self.directory, self.base_offset, suffix)

    @property
    def files(self) -> Files:
        """The disk that stores the segment."""
        return self._files

    # --- append ----------------------------------------------------------------------------------

    def append(
        self,
        batch: Bytes,
        base_offset: int,
        last_offset: int,
        timestamp: int,
        index_interval_bytes: int,
    ) -> None:
        """Stage a batch with its largest timestamp. The batch must not change until it is written.

        An index entry is due once per interval. An OSError leaves the segment unchanged.
        """
        if self._file is None:
            # Open the file before the batch is staged, because a staged batch must be written.
            self.open_file()
        position = self.size_bytes
        size = len(batch)
        newest = self._max_timestamp
        if newest is None:
            newest = self.max_timestamp
        # If several batches have the largest timestamp, the first one counts, as in Kafka.
        if timestamp > newest:
            self._max_timestamp = timestamp
            self._offset_of_max_timestamp = last_offset
        if position == 0:
            self._first_timestamp = timestamp
        staged = self.staged
        if not staged:
            # A reader that follows the log continues at the position at which this write starts.
            self._mark(base_offset, position)
        staged.append(batch)
        self.size_bytes = position + size
        # As in Kafka, the entry points to the first batch after a whole interval (ST-3).
        if self.bytes_since_index > index_interval_bytes:
            self.offset_index.append(last_offset - self.base_offset, position)
            self.index_time()
            self.bytes_since_index = 0
        self.bytes_since_index += size

    def write_staged(self) -> None:
        """Write all staged batches in one call. After an OSError, the segment cannot be used."""
        staged = self.staged
        if staged:
            position = self.size_bytes - sum(map(len, staged))
            (self._file or self.open_file()).writev(position, staged)
            staged.clear()

    def _aborted_index(self, stored: int) -> AbortedIndex:
        return AbortedIndex(self._files, self.path(ABORTED_INDEX_SUFFIX), stored)

    def index_aborted(self, aborted: Aborted) -> None:
        """Add an aborted transaction, whose marker was just appended, to the index."""
        if self.aborted is None:
            self.aborted = self._aborted_index(0)
        self.aborted.append(aborted)

    def index_time(self) -> None:
        """Add a time entry for the largest timestamp so far, unless the last entry covers it."""
        timestamp = self.max_timestamp
        last = self.time_index.last
        if timestamp > (last[0] if last else NO_TIMESTAMP):
            self.time_index.append(timestamp, self._offset_of_max_timestamp - self.base_offset)

    def fits(self, last_offset: int) -> bool:
        """Return whether the offset fits into 31 bits relative to the base offset."""
        return 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET

    # --- times -----------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> int:
        """The largest timestamp (ms) so far, for the time index, or -1 if there is none."""
        if self._max_timestamp is None:
            last = self.time_index.last
            self._max_timestamp = last[0] if last else NO_TIMESTAMP
            self._offset_of_max_timestamp = self.base_offset + (last[1] if last else 0)
        return self._max_timestamp

    @property
    def offset_of_max_timestamp(self) -> int:
        """The last offset of the batch that has the largest timestamp."""
        return self._offset_of_max_timestamp if self.max_timestamp >= 0 else self.base_offset

    @property
    def first_timestamp(self) -> int:
        """The first batch's largest timestamp, from which `segment.ms` counts, or -1."""
        if self._first_timestamp is None:
            if self.size_bytes == 0:
                return NO_TIMESTAMP
            self._first_timestamp = next(self.headers(0)).header.max_timestamp
        return self._first_timestamp

    def learn_from(self, copy: Segment) -> None:
        """Copy the largest timestamp from a copy of this segment that a thread has read."""
        # In the meantime, an append may have set it, based on more batches than the copy contains.
        if self._max_timestamp is None and copy._max_timestamp is not None:
            self.learn_max_timestamp(copy._max_timestamp, copy._offset_of_max_timestamp)

    def learn_max_timestamp(self, timestamp: int, offset: int) -> None:
        """Set the largest timestamp from a scan, and the last offset of its batch."""
        self._max_timestamp = timestamp
        self._offset_of_max_timestamp = offset

    # --- find ------------------------------------------------------------------------------------

    def headers(self, position: int, end: int | None = None) -> Iterator[Located]:
        """Yield the batches between `position` and `end`, which must both be batch boundaries.

        Raises DamagedBatch. The length of a batch is not covered by a checksum. If a damaged length
        is too large, the search must not simply end, because the reader would then continue in the
        next segment and skip the rest of this one.
        """
        assert not self.staged, "staged batches are not in the file"
        end = self.size_bytes if end is None else end
        file = self._file or self.open_file()
        while position < end:
            window = file.pread(min(_WINDOW_BYTES, end - position), position)
            at = 0
            while True:
                try:
                    header = read_header(window, at)
                    # Compare with the end of the records, because a batch may exceed the window.
                    if header.size_bytes > end - position - at:
                        raise CorruptData(
                            f"a batch of {header.size_bytes} bytes, but only "
                            f"{end - position - at} are left"
                        )
                except CorruptData as cause:
                    raise DamagedBatch(self.path(LOG_SUFFIX), position + at, cause) from cause
                yield Located(position + at, header)
                at += header.size_bytes
                # The rest of the window is shorter than a header, so read on from that position.
                if len(window) - at < HEADER_BYTES:
                    break
            position += at

    def headers_in_order(
        self, entry: tuple[int, int] | None, bound: int, end: int | None = None
    ) -> Iterator[Located]:
        """Yield batches whose offsets are possible, from an index entry (or from the start) on.

        The base offset of a batch is not covered by a checksum either. Compaction leaves gaps, but
        batches never overlap. A batch after a gap is therefore accepted if it is consistent with
        the next batch or, at the end, with the `bound` above all offsets in the segment. Otherwise,
        the batch is damaged, and DamagedBatch is raised.
        """
        expected: int | None = self.base_offset
        indexed, position = _NO_OFFSET, 0
        if entry is not None:
            # The last offset of the batch or, in Kafka's files, perhaps of a later one.
            expected, indexed, position = None, self.base_offset + entry[0], entry[1]
        bound = min(bound, self.base_offset + MAX_RELATIVE_OFFSET + 1)
        doubtful: Located | None = None
        damaged: DamagedBatch | None = None
        batches = self.headers(position, end)
        while True:
            try:
                found = next(batches, None)
            except DamagedBatch as error:
                found, damaged = None, error
            if found is None:
                break
            base_offset, last_offset = found.header.base_offset, found.header.last_offset
            floor = expected if doubtful is None else doubtful.header.last_offset + 1
            if (floor is not None and base_offset < floor) or (
                doubtful is not None
                and doubtful.position == position
                and doubtful.header.last_offset < indexed < base_offset
            ):
                raise self._out_of_order(doubtful or found, expected)
            if doubtful is not None:
                yield doubtful
                doubtful, expected = None, floor
            if not base_offset <= last_offset < bound:
                raise self._out_of_order(found, expected)
            is_indexed = found.position == position and entry is not None
            if is_indexed and base_offset > indexed and found.header.magic == _WITH_BASE_OFFSET:
                raise self._out_of_order(found, expected)
            if base_offset == expected or (is_indexed and last_offset == indexed):
                yield found
                expected = last_offset + 1
            else:
                doubtful = found
        if doubtful is not None:
            yield doubtful
        if damaged is not None:
            raise damaged

    def _out_of_order(self, found: Located, expected: int | None) -> DamagedBatch:
        stated = (
            f"its offset {found.header.base_offset} is not between the offsets of its neighbors"
        )
        return DamagedBatch(
            self.path(LOG_SUFFIX), found.position, CorruptData(stated), offset=expected
        )

    def locate(self, offset: int, bound: int = _MAX_OFFSET) -> int | None:
        """Return the position of the first batch that ends at or after `offset`, if there is one.

        `bound` must be above all offsets in the segment. Raises DamagedBatch if an earlier batch is
        damaged.
        """
        position = self._marks.get(offset)
        # For a reader that follows the log, the position is among the marks.
        if position is not None:
            return position
        entry = self.offset_index.floor(offset - self.base_offset)
        indexed, position = entry or (_NO_OFFSET, 0)
        expected = self.base_offset
        for found in self.headers(position):
            header = found.header
            last_offset = header.base_offset + header.last_offset_delta
            # Either there is a gap or an offset is damaged. A slower scan of the adjacent batches
            # will show which is the case.
            if header.base_offset != expected and (
                found.position != position or last_offset != self.base_offset + indexed
            ):
                return self._locate_in_order(offset, entry, bound)
            if last_offset >= offset:
                return (
                    found.position
                    if last_offset < bound
                    else self._locate_in_order(offset, entry, bound)
                )
            expected = last_offset + 1
        return None

    def _locate_in_order(
        self, offset: int, entry: tuple[int, int] | None, bound: int
    ) -> int | None:
        """Do the same as `locate`, from an index entry on, if there may be gaps."""
        for found in self.headers_in_order(entry, bound):
            if found.header.last_offset >= offset:
                return found.position
        return None

    def end_offset(self) -> int:
        """Return the offset after the last record or, if the segment is empty, the base offset."""
        entry = self.offset_index.last
        end_offset = self.base_offset
        for found in self.headers(entry[1] if entry else 0):
            end_offset = found.header.last_offset + 1
        return end_offset

    def index_position(self, offset: int) -> int:
        """Return the position at which a scan for `offset` has to start (ST-3)."""
        entry = self.offset_index.floor(offset - self.base_offset)
        return entry[1] if entry else 0

    def boundary(self, start: int, limit: int, end: int) -> int:
        """Return the last boundary between batches in the range from `start` to `limit`.

        `start` and `end` must be batch boundaries, and `limit` must be below `end`. The search ends
        before a damaged batch. If that batch begins at `start`, DamagedBatch is raised.
        """
        entry = self.offset_index.floor_by_second(limit)
        position = max(start, entry[1] if entry else 0)
        try:
            for found in self.headers(position, end):
                position = found.position
                if position + found.header.size_bytes > limit:
                    self._mark(found.header.base_offset, position)
                    break
        except DamagedBatch as damaged:
            if damaged.position <= start:
                raise
            return damaged.position
        return position

    def _mark(self, base_offset: int, position: int) -> None:
        marks = self._marks
        marks[base_offset] = position
        if len(marks) > _KEPT_MARKS:
            del marks[next(iter(marks))]

    # --- read ------------------------------------------------------------------------------------

    def slice(self, start: int, end: int) -> FileSlice:
        assert not self.staged, "staged batches are not in the file"
        return FileSlice(self._file or self.open_file(), start, end - start)

    def read_batch(self, position: int, size: int) -> bytes:
        """Read a whole batch. The result is too short if the file is too short."""
        return (self._file or self.open_file()).pread(size, position)

    def is_cold(self, offset: int) -> bool:
        """Return whether `locate` might have to wait for the disk."""
        if self._file is None:
            return True
        if offset in self._marks:
            return False
        try:
            if self.offset_index.is_cold:
                return True
            return not self._file.is_cached(self.index_position(offset), _WINDOW_BYTES)
        except OSError:
            return True  # the read will raise the error again

    @property
    def is_closed(self) -> bool:
        """True if the log file must be opened for the next read."""
        return self._file is None

    def copy(self) -> Segment:
        """Return a copy for a thread to read. It uses the same files with their current sizes."""
        copy = Segment(
            self._files,
            self.directory,
            self.base_offset,
            Sizes(
                self.size_bytes - sum(map(len, self.staged)),
                self.offset_index.stored_bytes,
                self.time_index.stored_bytes,
                self.aborted.stored_bytes if self.aborted is not None else 0,
            ),
        )
        copy.learn_from(self)
        return copy

    # --- the files -------------------------------------------------------------------------------

    def forget_indexes(self) -> None:
        """Clear the indexes, which will be rebuilt from the log."""
        self.offset_index.clear()
        self.time_index.clear()
        if self.aborted is not None:
            self.aborted.clear()
        self._max_timestamp, self._offset_of_max_timestamp = NO_TIMESTAMP, self.base_offset

    def cut(self, position: int) -> None:
        """Truncate the log durably at `position`; the indexes must not extend beyond it.

        After a power failure, the removed records must not reappear among newer records. Their
        checksums would be valid, but other replicas do not have these records.
        """
        self.open_file().truncate(position)
        self._files.sync(self.path(LOG_SUFFIX))
        self.size_bytes = position
        self._marks.clear()

    def truncate(self, offset: int) -> bool:
        """Truncate the segment and its indexes at the start of the batch that contains `offset`.

        Returns whether anything was removed. The file itself is truncated by `Cut`.
        """
        position: int | None
        try:
            position = self.locate(offset)
        except DamagedBatch as damaged:
            position = damaged.position
        newest, newest_at = self.max_timestamp, self._offset_of_max_timestamp
        relative = offset - self.base_offset
        # The offset is the first column of one index and the second of the other. Both are sorted.
        for index, column in ((self.offset_index, 0), (self.time_index, 1)):
            index.truncate(bisect_left(index, relative, key=itemgetter(column)))
        if self.aborted is not None:
            self.aborted.cut(offset)
        if position is not None:
            self.size_bytes = position
            self._marks.clear()
        self._first_timestamp = self._max_timestamp = self.untimed_since_ms = None
        self.bytes_since_index = 0
        # The batch with the largest timestamp is not removed, so there is no need to search.
        if newest_at < offset:
            self.learn_max_timestamp(newest, newest_at)
            return position is not None
        # The last entry of the time index may not cover the batches after it.
        known = self.max_timestamp
        for found in self.headers(self.index_position(self._offset_of_max_timestamp)):
            if found.header.max_timestamp > known:
                known = found.header.max_timestamp
                self.learn_max_timestamp(known, found.header.last_offset)
        return position is not None

    def write_out(self) -> None:
        """Write the files that Kafka writes on a roll or a clean shutdown, without syncing them."""
        self.write_staged()
        self.index_time()
        self.offset_index.write_out()
        self.time_index.write_out()
        if self.aborted is not None:
            self.aborted.write_out()
        if self._file is not None and self._file.size() != self.size_bytes:
            self._file.truncate(self.size_bytes)  # remove what a torn write has left

    def paths(self) -> list[Path]:
        """Return the paths of all files of the segment, starting with the log file."""
        # Every flush needs these paths, and it is cheaper to reuse a path than to create one.
        paths = [self.path(LOG_SUFFIX), self.offset_index.path, self.time_index.path]
        if self.aborted is not None and self.aborted.has_file:
            paths.append(self.aborted.path)
        return paths

    def on_renamed(self, directory: Path) -> None:
        """Switch to the new name of the directory."""
        self.directory = directory
        self.offset_index.path = self.path(OFFSET_INDEX_SUFFIX)
        self.time_index.path = self.path(TIME_INDEX_SUFFIX)
        if self.aborted is not None:
            self.aborted.path = self.path(ABORTED_INDEX_SUFFIX)

    def release(self) -> None:
        """Close the descriptors that no slice uses. The files are reopened when needed."""
        self._marks = {}
        if self._file is not None:
            self._file.release()
            self._file = None
        self.offset_index.release()
        self.time_index.release()
        if self.aborted is not None:
            self.aborted.release()

    def need_descriptors(self) -> None:
        """Raise OSError if it is impossible to open even a few files.

        Call this before work that must not be interrupted.
        """
        held: list[File] = []
        try:
            for _ in range(_HANDFUL):
                held.append(self._files.open(self.path(LOG_SUFFIX)))
        finally:
            for each in held:
                each.release()

    def open_file(self) -> File:
        """Return the log file. The file is opened if it is not open yet."""
        if self._file is None:
            self._file = self._files.open(self.path(LOG_SUFFIX))
        return self._file


class Sizes(NamedTuple):
    """The sizes (bytes) of a segment's files. If a file does not exist, its size is 0."""

    log: int
    offset_index: int
    time_index: int
    aborted: int = 0
