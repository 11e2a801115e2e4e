"""Tracks the open transactions of a log, and indexes its aborted transactions (KIP-98).

    .txnindex    version int16 (0) | producer id int64 | first offset int64 | last offset int64
                 | last stable offset int64                                  34 bytes an entry

Each ABORT marker has an entry in its segment. `last offset` is the marker's, so that column
increases; `last stable offset` is that of the log after this transaction had ended. A
read_committed consumer receives the transactions that overlap its range, and skips their batches.
The file is created with the first entry.

A record is stable if it is below the high watermark and below the first offset of every transaction
that is open or whose marker is not below the high watermark: a new leader may lack that marker.
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
    """An aborted transaction: read_committed consumers skip its producer's records from it on."""

    producer_id: int
    first_offset: int


class Aborted(NamedTuple):
    """An entry of the index."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class Ended(NamedTuple):
    """The result of a marker that ended a transaction."""

    first_offset: int
    marker_offset: int
    last_stable_offset: int
    """The current last stable offset, considering only open transactions."""


class AbortedIndex(EntryFile):
    """The index of a segment's aborted transactions, ordered by marker offset."""

    __slots__ = ()

    def __init__(self, files: Files, path: Path, stored: int) -> None:
        super().__init__(files, path, _ENTRY, stored)

    def __getitem__(self, i: int) -> Aborted:
        return self.entries(i, 1)[0]

    def append(self, aborted: Aborted) -> None:
        self.add(_ENTRY.pack(_VERSION, *aborted))

    def entries(self, first: int, count: int) -> list[Aborted]:
        """Return up to `count` entries from `first` on. Raises CorruptData if any is damaged."""
        found = []
        for version, *fields in _ENTRY.iter_unpack(self.raw(first, min(count, self.count - first))):
            # Kafka has never written another version.
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
                    # An entry out of order is damaged: marker offsets increase.
                    if entry.last_offset <= last_offset:
                        return False
                    last_offset = entry.last_offset
        except CorruptData:
            return False
        return True

    def collect(self, start: int, end: int, found: list[AbortedTransaction]) -> bool:
        """Add the transactions that overlap the offsets from `start` to below `end`.

        Returns whether no later segment can contain such a transaction. If everything below `end`
        was stable when a transaction ended, no later one can overlap.
        """
        i = bisect_left(self, start, key=lambda entry: entry.last_offset)
        while i < self.count:
            entries = self.entries(i, _READ_AT_ONCE)
            for entry in entries:
                if entry.first_offset < end:
                    found.append(AbortedTransaction(entry.producer_id, entry.first_offset))
                # When this transaction ended, everything below `end` was stable, so later ones
                # start above it.
                if entry.last_stable_offset >= end:
                    return True
            i += len(entries)
        return False

    def cut(self, offset: int) -> None:
        """Remove the transactions whose markers are at or after the offset."""
        self.truncate(bisect_left(self, offset, key=lambda entry: entry.last_offset))


class OpenTransactions:
    """The transactions that hold back the last stable offset."""

    __slots__ = ("_ended", "_open")

    def __init__(self) -> None:
        self._open: dict[int, int] = {}  # first offsets by producer, in ascending order
        # (marker's offset, first offset), ascending by marker
        self._ended: list[tuple[int, int]] = []

    def begin(self, producer_id: int, first_offset: int) -> None:
        self._open[producer_id] = first_offset

    def end(self, producer_id: int, marker_offset: int) -> Ended | None:
        """End a producer's transaction. Returns None if none is open (for a marker without
        data)."""
        first_offset = self._open.pop(producer_id, None)
        # The coordinator sends markers to all added partitions, even to those without data.
        if first_offset is None:
            return None
        self._ended.append((marker_offset, first_offset))
        stable = next(iter(self._open.values()), marker_offset + 1)
        return Ended(first_offset, marker_offset, stable)

    def stable_below(self, high_watermark: int) -> int:
        """Return the last stable offset: the first one that read_committed consumers cannot see."""
        ended = self._ended
        # Once their markers are committed, they no longer limit the last stable offset.
        if ended and ended[0][0] < high_watermark:
            del ended[: bisect_left(ended, (high_watermark, -1))]
        stable = next(iter(self._open.values()), high_watermark)
        for _, first_offset in ended:
            stable = min(stable, first_offset)
        return min(stable, high_watermark)
