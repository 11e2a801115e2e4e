"""Manages the segments of a log from the oldest to the newest, which is the active segment.

This module finds the segment that contains an offset, limits the number of open files (the active
segment and those read most recently), and manages discarded files. Invariant: there is always at
least one segment, base offsets increase, and each segment ends before the next one starts. Reads
return whole batches as file slices.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from operator import is_
from pathlib import Path
from typing import overload

from barnabas.storage.files import Files
from barnabas.storage.leftovers import DELETED
from barnabas.storage.segment import DamagedBatch, Segment
from barnabas.storage.transaction_index import AbortedTransaction
from barnabas.types import FileSlice

_OPEN_ROLLED = 2  # rolled segments kept open for readers that are catching up

NO_END = 2**63 - 1


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


class Segments(Sequence[Segment]):
    """The segments of a log. All staged batches must be written before the segments are read."""

    __slots__ = ("_all", "_files", "_opened", "_rested_at", "active", "directory", "discards")

    def __init__(self, files: Files, directory: Path, found: list[Segment]) -> None:
        """Use the segments that were `found` on disk. There must be at least one."""
        self.directory = directory
        self.active = found[-1]
        self._all = found
        self._files = files
        self._opened: tuple[Segment, ...] = ()
        self._rested_at = -1
        self.discards = Discards(files)

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, i: int) -> Segment: ...
    @overload
    def __getitem__(self, i: slice) -> list[Segment]: ...
    def __getitem__(self, i: int | slice) -> Segment | list[Segment]:
        return self._all[i]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._all)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._all)

    def begin(self, base_offset: int) -> Segment:
        """Add a new segment, which becomes the active one."""
        segment = Segment.create(self._files, self.directory, base_offset)
        rolled, self.active = self.active, segment
        self._all.append(segment)
        self._keep_open(rolled)
        return segment

    # --- read ------------------------------------------------------------------------------------

    def read(
        self,
        offset: int,
        max_bytes: int,
        end_offset: int,
        at_least_one_batch: bool,
        log_end_offset: int = NO_END,
    ) -> list[FileSlice]:
        """Return whole batches below `end_offset`, starting with the one that contains `offset`.

        The offset must exist. The total size is at most `max_bytes`. With `at_least_one_batch`, the
        first batch is returned even if it is larger. If a header is damaged, the result ends before
        it. If the first header is damaged, DamagedBatch is raised.
        """
        slices: list[FileSlice] = []
        try:
            i = self._index_of(offset)
            start = self._all[i].locate(offset, self._bound(i, log_end_offset))
            while True:
                segment = self._all[i]
                try:
                    end = self._end_position(i, end_offset)
                except DamagedBatch as damaged:
                    # Return the batches before the damaged one. The next read raises the error.
                    if damaged.position <= (start or 0) and not slices:
                        raise
                    end = damaged.position
                start = end if start is None else start
                size = end - start
                # The rest of this segment exceeds the limit, so end with the last batch that fits.
                if size > max_bytes:
                    end = start
                    if max_bytes > 0:
                        end = segment.boundary(start, start + max_bytes, start + size)
                    # KIP-74: return the whole first batch even if it is too large. Otherwise, a
                    # consumer could never get past it.
                    if end == start and at_least_one_batch and not slices:
                        end = start + next(segment.headers(start)).header.size_bytes
                if end > start:
                    slices.append(segment.slice(start, end))
                    max_bytes -= end - start
                # A response must not have holes, so continue in the next segment only if this one
                # was read completely.
                if end < segment.size_bytes or i + 1 == len(self._all) or max_bytes <= 0:
                    return slices
                i, start = i + 1, 0
        except BaseException:
            for each in slices:
                each.release()
            raise

    def is_cold(self, offset: int, max_bytes: int) -> bool:
        """Return whether a read at this offset might have to wait for the disk."""
        active = self.active
        # Most reads are from the active segment, which needs no bisection.
        if offset >= active.base_offset:
            return active.is_cold(offset)
        i = bisect_right(self._all, offset, key=_base_offset) - 1
        segment = self._all[i]
        if segment.is_cold(offset):
            return True
        max_bytes -= segment.size_bytes - segment.index_position(offset)
        while max_bytes >= 0 and i + 1 < len(self._all):
            i += 1
            # Opening a file may have to wait for the disk even if the file's pages are cached.
            if self._all[i].size_bytes and self._all[i].is_closed:
                return True
            max_bytes -= self._all[i].size_bytes
        return False

    def batch_begin(self, offset: int) -> int:
        """Return the base offset of the batch that contains the offset. If no batch contains it,
        return the offset.

        The offset must not be below the first segment.
        """
        segment = self._all[self._index_of(offset)]
        try:
            position = segment.locate(offset) if segment.size_bytes else None
        except DamagedBatch as damaged:
            return offset if damaged.offset is None else damaged.offset
        if position is None:
            return offset
        return min(offset, next(segment.headers(position)).header.base_offset)

    def _bound(self, i: int, log_end_offset: int) -> int:
        """Return an upper bound for the offsets in segment i."""
        return self._all[i + 1].base_offset if i + 1 < len(self._all) else log_end_offset

    def _index_of(self, offset: int) -> int:
        """Return the index of the segment whose range contains the offset."""
        i = len(self._all) - 1
        if offset < self.active.base_offset:
            i = bisect_right(self._all, offset, key=_base_offset) - 1
            self._keep_open(self._all[i])
        return i

    def _end_position(self, i: int, end_offset: int) -> int:
        """Return the position in segment i at which a reader has to stop."""
        segment = self._all[i]
        following = i + 1
        if following < len(self._all):
            self._keep_open(segment)
            if end_offset >= self._all[following].base_offset:
                return segment.size_bytes
        # The reader may read the whole log, so it stops at the end of the active segment.
        elif end_offset == NO_END:
            return segment.size_bytes
        if end_offset <= segment.base_offset:
            return 0
        end = segment.locate(end_offset)
        return segment.size_bytes if end is None else end

    def _keep_open(self, segment: Segment) -> None:
        """Keep the files of the rolled segments that were read most recently open, and close all
        others.
        """
        opened = self._opened
        if segment not in opened:
            # If all files stayed open, a broker with many partitions would run out of descriptors.
            if len(opened) == _OPEN_ROLLED:
                opened[0].release()
            self._opened = (*opened[1 - _OPEN_ROLLED :], segment)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that overlap the range from `start` up to, but not
        including, `end`.
        """
        found: list[AbortedTransaction] = []
        for segment in self._all[max(0, bisect_right(self._all, start, key=_base_offset) - 1) :]:
            # Later segments contain no transaction that overlaps the range; see `collect`.
            if segment.aborted is not None and segment.aborted.collect(start, end, found):
                break
        self.close_searched()
        return found

    def close_searched(self) -> None:
        """Close all segments that may have been opened by a search."""
        for segment in self._all[:-1]:
            if segment not in self._opened:
                segment.release()

    # --- change ----------------------------------------------------------------------------------

    def take_first(self, count: int) -> list[Segment]:
        """Remove the `count` oldest segments and return them. At least one segment must remain."""
        taken = self._all[:count]
        assert len(taken) < len(self._all), "a log has a segment"
        del self._all[:count]
        self._close(taken)
        return taken

    def take_from(self, offset: int) -> list[Segment]:
        """Remove the segments that begin at or above the offset and return them. The first segment
        is never removed.
        """
        i = max(1, bisect_left(self._all, offset, key=_base_offset))
        taken = self._all[i:]
        del self._all[i:]
        self.active = self._all[-1]
        self._close(taken)
        return taken

    def replace_all(self, base_offset: int) -> list[Segment]:
        """Remove all segments and return them. The log starts again with an empty segment at an
        offset.
        """
        taken, self._all = self._all, []
        self._close(taken)
        self.active = Segment.create(self._files, self.directory, base_offset)
        self._all.append(self.active)
        return taken

    def has(self, some: Sequence[Segment]) -> bool:
        """Return whether the log contains exactly these segments in a row and none of them is the
        active one.
        """
        i = bisect_left(self._all, some[0].base_offset, key=_base_offset)
        found = self._all[i : i + len(some)]
        return len(found) == len(some) and all(map(is_, found, some)) and i + len(some) < len(self)

    def replace(self, some: Sequence[Segment], new: Segment) -> None:
        """Replace these adjacent segments with one that contains their remaining batches."""
        i = bisect_left(self._all, some[0].base_offset, key=_base_offset)
        self._all[i : i + len(some)] = [new]
        self._close(some)

    def on_renamed(self, directory: Path) -> None:
        """Switch to the new name of the directory."""
        self.directory = directory
        for segment in self._all:
            segment.on_renamed(directory)

    def _close(self, taken: Sequence[Segment]) -> None:
        self._opened = tuple(each for each in self._opened if each not in taken)
        for segment in taken:
            segment.release()

    def rest(self, log_end_offset: int) -> None:
        """Close all file descriptors if the log end has not moved since this was last called."""
        if self._rested_at == log_end_offset:
            self.release()
        self._rested_at = log_end_offset

    def release(self) -> None:
        """Close all file descriptors."""
        for segment in self._all:
            segment.release()
        self._opened = ()


class Discards:
    """Manages the discarded files of a log, which are renamed immediately and removed later.

    A file that was renamed cannot be mistaken for part of the log, even if the process dies. If any
    of these files remain, the next start removes them (`leftovers`). Removing a large file keeps
    the disk busy, so a thread does it.
    """

    __slots__ = ("_files", "_waiting")

    def __init__(self, files: Files) -> None:
        self._files = files
        # The event loop adds files at one end of the queue, and the thread removes them at the
        # other. Most logs never discard a file, so the queue is created when the first file is
        # discarded.
        self._waiting: deque[tuple[int, Path]] | None = None

    def __len__(self) -> int:
        return len(self._waiting or ())

    def discard(self, segments: Iterable[Segment], due_ms: int) -> None:
        """Rename the files of these segments in this order. They are removed after `due_ms`."""
        if self._waiting is None:
            self._waiting = deque()
        for path in (path for segment in segments for path in segment.paths()):
            target = path.with_name(path.name + DELETED)
            try:
                self._files.replace(path, target)
            except FileNotFoundError:
                continue
            self._waiting.append((due_ms, target))

    def remove_due(self, now_ms: int) -> int:
        """Remove the files that are due, and return how many were removed. This may run in a
        thread.
        """
        removed = 0
        while self._waiting and self._waiting[0][0] <= now_ms:
            self._files.remove(self._waiting[0][1])
            self._waiting.popleft()
            removed += 1
        return removed
