"""Maps each key to its latest offset, so that compaction can tell which records to keep.

As in Kafka, each key takes 24 bytes: two 64-bit hashes instead of the key itself, and the offset.
If the keys of a log do not fit into `log.cleaner.dedupe.buffer.size`, the log is cleaned in several
passes.

    adding      appends an entry to one of 256 parts, selected by the first hash, without looking
                anything up, because each lookup would miss every CPU cache
    thinning    removes all but the last entry of each key, one part at a time, using a small dict;
                runs when a sample contains too many obsolete entries, and at the end
    looking up  splits the parts into regions of a few dozen entries, which one call can search

The hashes are computed by Python's own hash function for bytes (SipHash, with a secret that differs
between processes). A client therefore cannot construct two keys with the same hashes in order to
delete another key's record. With Kafka's MD5 hashes, this is possible.

When the map is complete, each offset gets a mark of one byte (`marks`). If the marks show that all
records of a batch are kept, or none of them, the batch need not be read again:

    bit 0    the newest record of its key     bit 1    a tombstone
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import chain
from struct import Struct, iter_unpack

from barnabas.records.batch import BatchHeader

BYTES_PER_KEY = 24
LOAD_FACTOR = 0.9
"""Kafka's default for `log.cleaner.io.buffer.load.factor`."""

NEWEST, TOMBSTONE = 1, 2
_MARKS_SHARE = 4  # marks may use 1/4 of the buffer, because gaps need them too

_PARTS = 256
_REGION_ENTRIES = 64
_TAG_BYTES = 16
_OFFSET = Struct("q")

_MOST_REPEATED = 1.18  # entries per key above which the map is thinned
_LOOK_EVERY = 1.02  # the minimum growth of the entries between two samples
_SAMPLE_PARTS = 4
_UNTHINNED = 700_000  # with fewer entries (16 MiB), thin only at the end

_SHORT_KEY_BYTES = 63  # in a record, the length of a key up to this size takes one byte
_SHORT = [bytes((2 * size,)) for size in range(_SHORT_KEY_BYTES + 1)]
_LONG = b"\xff"

UNKNOWN = -(2**63)
"""An offset that is lower than the offset of any record."""


def fold(key: bytes) -> tuple[int, int]:
    """Return the two hashes that represent a key.

    The first hash covers only the key. The second hash also covers the byte that precedes the key
    in the record. If the length of the key is encoded in one byte, that byte is used; otherwise, a
    fixed byte is used.
    """
    return hash(key), hash((_SHORT[len(key)] if len(key) <= _SHORT_KEY_BYTES else _LONG) + key)


class KeyMap:
    """Stores the newest offset of each hashed key in a log, from `first_offset` to `latest_offset`.

    Call `finish` after the last `add` and before the first `newest`.
    """

    __slots__ = (
        "_added",
        "_buffer_bytes",
        "_entries",
        "_look_at",
        "_mask",
        "_most_entries",
        "_parts",
        "_regions",
        "first_offset",
        "latest_offset",
        "marks",
        "unopened",
    )

    def __init__(
        self, buffer_bytes: int, first_offset: int = 0, *, load_factor: float = LOAD_FACTOR
    ) -> None:
        self._buffer_bytes = buffer_bytes
        self._most_entries = int(buffer_bytes // BYTES_PER_KEY * load_factor)
        self._parts = [bytearray() for _ in range(_PARTS)]
        self._entries = 0
        self._added = 0  # entries since the last thinning
        self._look_at = _UNTHINNED
        self._regions: list[bytes] = []
        self._mask = 0
        self.first_offset = first_offset
        self.latest_offset = first_offset - 1
        """The offset up to which all records are in the map. All later records are kept."""
        self.marks: bytearray | None = bytearray()
        """The marks of all offsets from the first one on, or None if they would need too much
        memory.
        """
        self.unopened: set[int] = set()
        """The base offsets of batches whose keys are unknown, because they are too large to
        decompress.
        """

    def has_room(self, header: BatchHeader) -> bool:
        """Return whether the map has room for all records of a batch.

        The first batch is always accepted. If a pass could not add any batch, the next pass would
        do no better.
        """
        most = self._most_entries - header.record_count
        # Removing obsolete entries may make room, but it is slow and should not be done often.
        if self._entries > most and self._added > self._most_entries // _MARKS_SHARE:
            self._thin()
        return not self._entries or self._entries <= most

    def add(self, words: Sequence[int]) -> None:
        """Add keys, each given as two hashes and an offset.

        The offsets are relative to the first offset of the map. For each key, the offset must
        increase from call to call.
        """
        parts = self._parts
        for (entry,), first in zip(iter_unpack("24s", array("q", words)), words[::3], strict=True):
            part = parts[first & 0xFF]
            part += entry
        count = len(words) // 3
        self._entries += count
        self._added += count
        if self._entries >= self._look_at:
            self._look()

    def _look(self) -> None:
        """Remove obsolete entries if a sample of the parts contains too many entries for the same
        keys.
        """
        sample = b"".join(self._parts[:_SAMPLE_PARTS])
        keys = len(set(iter_unpack("16s8x", sample)))
        repeated = len(sample) / BYTES_PER_KEY / keys if keys else 1.0
        if repeated >= _MOST_REPEATED:
            self._thin()
            repeated = 1.0
        following = self._entries * max(_LOOK_EVERY, _MOST_REPEATED / repeated)
        self._look_at = max(_UNTHINNED, int(following))

    def _thin(self) -> None:
        """Remove all but the newest entry of each key."""
        for i, part in enumerate(self._parts):
            newest = dict(iter_unpack("16s8s", part))
            if len(newest) * BYTES_PER_KEY < len(part):
                self._parts[i] = bytearray(b"".join(chain.from_iterable(newest.items())))
        self._entries = sum(map(len, self._parts)) // BYTES_PER_KEY
        self._added = 0

    def make_marks(self, last_offset: int) -> bytearray | None:
        """Extend the array of marks up to an offset."""
        marks = self.marks
        if marks is not None:
            missing = last_offset + 1 - self.first_offset - len(marks)
            # The array has a mark for every offset, so a log with many gaps would need too much
            # memory.
            if len(marks) + missing > self._buffer_bytes // _MARKS_SHARE:
                marks = self.marks = None
            elif missing > 0:
                marks += bytes(missing)
        return marks

    def finish(self) -> None:
        """Prepare the map for lookups. Call this after all keys have been added."""
        self._thin()
        marks = self.marks
        if marks is not None:
            for part in self._parts:
                for offset in memoryview(part).cast("q")[2::3].tolist():
                    marks[offset] |= NEWEST

    def marks_of(self, header: BatchHeader) -> bytearray | None:
        """Return the marks of a batch's records in the order of the records, or None if the map has
        no marks for them.
        """
        begin = header.base_offset - self.first_offset
        end = begin + header.last_offset_delta + 1
        is_whole = header.record_count == header.last_offset_delta + 1
        if self.marks is None or begin < 0 or end > len(self.marks) or not is_whole:
            return None
        if header.base_offset in self.unopened:
            return None
        return self.marks[begin:end]

    def newest(self, words: Sequence[int]) -> list[int]:
        """Return the newest offset of each key, which is given as two hashes, or UNKNOWN if the key
        is not in the map.

        The returned offsets are relative to the first offset of the map.
        """
        if not self._entries:
            return [UNKNOWN] * (len(words) // 2)
        if not self._regions:
            self._split()
        regions, mask = self._regions, self._mask
        found: list[int] = []
        for (tag,), first in zip(iter_unpack("16s", array("q", words)), words[::2], strict=True):
            region = regions[first & mask]
            at = region.find(tag)
            while at >= 0 and at % BYTES_PER_KEY:
                at = region.find(tag, at + 1)  # the match spans two entries, so continue the search
            if at >= 0:
                found.append(_OFFSET.unpack_from(region, at + _TAG_BYTES)[0])
            else:
                found.append(UNKNOWN)
        return found

    def _split(self) -> None:
        """Split the parts into regions. After that, no more entries can be added.

        The last eight bits of the first hash select the part, and the next bits select the region.
        """
        shares = 1
        # Searching a region of this size takes no longer than a few comparisons.
        while shares * _PARTS * _REGION_ENTRIES < self._entries:
            shares *= 2
        self._mask = shares * _PARTS - 1
        regions = [b""] * (shares * _PARTS)
        for i, part in enumerate(self._parts):
            split = [bytearray() for _ in range(shares)]
            firsts = memoryview(part).cast("q")[::3].tolist()
            for (entry,), first in zip(iter_unpack("24s", part), firsts, strict=True):
                share = split[first >> 8 & shares - 1]
                share += entry
            regions[i::_PARTS] = [bytes(share) for share in split]
            self._parts[i] = bytearray()
        self._regions = regions
