"""Tracks the open transactions of a log and maintains the index of its aborted transactions
(KIP-98).

    .txnindex    version int16 (0) | producer id int64 | first offset int64 | last offset int64
                 | last stable offset int64                                  34 bytes per entry

For each ABORT marker, the index of its segment contains an entry. `last offset` is the offset of
the marker, so its values increase. `last stable offset` is the log's last stable offset after the
end of this transaction. A read_committed consumer receives the transactions that overlap the range
it reads, and skips their batches. The file is created when the first entry is added.

A record is stable if its offset is below the high watermark and below the first offset of every
transaction that is still open. A transaction whose marker is not below the high watermark counts as
open, because a new leader may not have the marker.
"""

from __future__ import annotations

from bisect import bisect_left
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.storage.entry_file import EntryFile
from barnabas.storage.files import Files

_ENTRY = Struct(">hqqqq")
_VERSION = 0
_READ_AT_ONCE = 64

ABORTED_ENTRY_BYTES = _ENTRY.size


class AbortedTransaction(NamedTuple):
    """An aborted transaction. read_committed consumers skip the producer's records from its first
    offset on.
    """

    producer_id: int
    first_offset: int


class Aborted(NamedTuple):
    """Represents an entry of the index."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Ended(NamedTuple):
    """The result of applying a marker that has ended a transaction."""

    first_offset: int
    marker_offset: int
    last_stable_offset: int
    """The current last stable offset if only open transactions are considered."""


class AbortedIndex(EntryFile):
    """The index of the aborted transactions in a segment, sorted by the offset of the marker."""

    __slots__ = ()

    def __init__(self, files: Files, path: Path, stored: int) -> None:
        super().__init__(files, path, _ENTRY, stored)

    def __getitem__(self, i: int) -> Aborted:
        return self.entries(i, 1)[0]

    def append(self, aborted: Aborted) -> None:
        self.add(_ENTRY.pack(_VERSION, *aborted))

    def entries(self, first: int, count: int) -> list[Aborted]:
        """Return up to `count` entries, starting with entry `first`. Raises CorruptData if an entry
        is damaged.
        """
        found = []
        for version, *fields in _ENTRY.iter_unpack(self.raw(first, min(count, self.count - first))):
            # No version of Kafka has ever written another version of this file.
            if version != _VERSION:
                raise CorruptData(f"{self.path} has an entry of unknown version {version}")
            found.append(Aborted(*fields))
        return found

    def is_sound(self, base_offset: int) -> bool:
        """Return whether every entry is valid for the segment that starts at `base_offset`."""
        last_offset = base_offset - 1
        try:
            for first in range(0, self.count, _READ_AT_ONCE):
                for entry in self.entries(first, _READ_AT_ONCE):
                    # Marker offsets increase, so an entry that is out of order must be damaged.
                    if entry.last_offset <= last_offset:
                        return False
                    last_offset = entry.last_offset
        except CorruptData:
            return False
        return True

    def collect(self, start: int, end: int, found: list[AbortedTransaction]) -> bool:
        """Add the transactions that overlap the range from `start` up to, but not including, `end`.

        Returns True if no later segment can contain such a transaction. This is known if everything
        below `end` was already stable when one of the transactions ended.
        """
        i = bisect_left(self, start, key=lambda entry: entry.last_offset)
        while i < self.count:
            entries = self.entries(i, _READ_AT_ONCE)
            for entry in entries:
                if entry.first_offset < end:
                    found.append(AbortedTransaction(entry.producer_id, entry.first_offset))
                # Everything below `end` was stable when this transaction ended, so later
                # transactions begin above it.
                if entry.last_stable_offset >= end:
                    return True
            i += len(entries)
        return False

    def cut(self, offset: int) -> None:
        """Remove the transactions whose markers are at or above the offset."""
        self.truncate(bisect_left(self, offset, key=lambda entry: entry.last_offset))


class OpenTransactions:
    """Tracks the transactions that keep the last stable offset from advancing."""

    __slots__ = ("_ended", "_open")

    def __init__(self) -> None:
        self._open: dict[int, int] = {}  # first offsets by producer, in ascending order
        # (marker's offset, first offset), ascending by marker
        self._ended: list[tuple[int, int]] = []

    def begin(self, producer_id: int, first_offset: int) -> None:
        self._open[producer_id] = first_offset

    def end(self, producer_id: int, marker_offset: int) -> Ended | None:
        """End a producer's transaction. Returns None if no transaction is open, as for a marker
        without data."""
        first_offset = self._open.pop(producer_id, None)
        # The coordinator sends a marker to every partition that was added, even if it contains no
        # data.
        if first_offset is None:
            return None
        self._ended.append((marker_offset, first_offset))
        stable = next(iter(self._open.values()), marker_offset + 1)
        return Ended(first_offset, marker_offset, stable)

    def stable_below(self, high_watermark: int) -> int:
        """Return the last stable offset, which is the first offset that read_committed consumers
        cannot read.
        """
        ended = self._ended
        # When a marker is committed, its transaction no longer limits the last stable offset.
        if ended and ended[0][0] < high_watermark:
            del ended[: bisect_left(ended, (high_watermark, -1))]
        stable = next(iter(self._open.values()), high_watermark)
        for _, first_offset in ended:
            stable = min(stable, first_offset)
        return min(stable, high_watermark)
