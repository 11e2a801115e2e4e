"""Runs lookups in a thread if they may have to wait for the disk, using copies of the segments.

The event loop owns the segments of a log: it appends to them and closes their files. A thread
therefore works on copies that have the current sizes, and opens and closes the files itself. When
the event loop needs the data, the thread has already brought it into the page cache. If a file is
removed during a lookup, the lookup raises OSError; if a file is truncated, the lookup raises
CorruptData. The caller then checks whether the log has changed, and tries again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, cast

from barnabas.errors import CorruptData
from barnabas.storage.files import File
from barnabas.storage.search import Found, find_newest, find_timestamp
from barnabas.storage.segment import Segment
from barnabas.storage.segments import NO_END, Segments

if TYPE_CHECKING:
    from barnabas.storage.log import Log

_WARMED_BEHIND_BYTES = 64  # a read_committed consumer also reads the start of the next batch


class Lookup:
    """Searches for a timestamp in a thread.

    Create the lookup and use its result only on the event loop.
    """

    __slots__ = ("_copies", "_find", "_originals", "_state", "found")

    def __init__(self, log: Log, find: Callable[[Sequence[Segment]], Found | None]) -> None:
        log.write_staged()
        self._find = find
        self._state = _state_of(log)
        self._originals = log.segments
        # The thread must not use the original segments, because the event loop appends to them.
        self._copies = [segment.copy() for segment in self._originals]
        self.found: Found | None = None

    def run(self) -> None:
        """Search the copies. This may run in a thread. Raises OSError or CorruptData."""
        try:
            self.found = self._find(self._copies)
        finally:
            for copy in self._copies:
                copy.release()

    def is_of(self, log: Log) -> bool:
        """Return whether the log is still the one that was searched, ignoring any appends."""
        now = log.segments
        return (
            self._state == _state_of(log)
            and len(now) >= len(self._originals)
            and all(map(is_, self._originals, now))
        )

    def learn(self) -> None:
        """Copy the timestamps that the thread has read into the original segments."""
        for original, copy in zip(self._originals, self._copies, strict=True):
            original.learn_from(copy)


def timestamp_lookup(log: Log, timestamp_ms: int) -> Lookup:
    """Find the first record at or after the timestamp, whether or not it is committed (ST-4).

    The result is None if there is no such record.
    """
    return Lookup(log, partial(_find_timestamp, timestamp_ms, log.log_start_offset))


def newest_lookup(log: Log) -> Lookup:
    """Find the first record that has the largest timestamp in the log, ignoring records below the
    log start.

    The result is None if none of these records has a timestamp.
    """
    return Lookup(log, partial(_find_newest, log.log_start_offset))


def warming(log: Log, offset: int, max_bytes: int) -> Callable[[], None]:
    """Return a function that loads the data and the index entries needed by a read of the log.

    The function may run in a thread. It ignores disk errors, because the next read raises them.
    """
    segments = log.segments
    first = max(0, bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1)
    copies = [segments[first].copy()]
    left_bytes = max_bytes = max(0, max_bytes)  # as in any Fetch, a negative limit is zero
    # Load as many bytes as the read would return.
    for segment in segments[first + 1 :]:
        if left_bytes <= 0:
            break
        copies.append(segment.copy())
        left_bytes -= segment.size_bytes
    return partial(_warm, copies, offset, max_bytes)


def _state_of(log: Log) -> tuple[int, int]:
    return log.truncations, log.log_start_offset


def _find_timestamp(
    timestamp_ms: int, start_offset: int, segments: Sequence[Segment]
) -> Found | None:
    for segment in segments:  # one by one, so that a thousand files are not open at once
        found = find_timestamp([segment], timestamp_ms, start_offset)
        segment.release()
        if found is not None:
            return found
    return None


def _find_newest(start_offset: int, segments: Sequence[Segment]) -> Found | None:
    for segment in segments:
        _ = segment.max_timestamp
        segment.release()
    return find_newest(segments, start_offset)


def _warm(copies: list[Segment], offset: int, max_bytes: int) -> None:
    segments = Segments(copies[0].files, copies[0].directory, copies)
    try:
        with suppress(OSError, CorruptData):
            slices = segments.read(offset, max_bytes, NO_END, at_least_one_batch=True)
            try:
                for part in slices:
                    file = cast(File, part.file)
                    file.warm(part.position, part.size + _WARMED_BEHIND_BYTES)
            finally:
                for part in slices:
                    part.release()
            segments.aborted_transactions(offset, NO_END)
    finally:
        segments.release()
