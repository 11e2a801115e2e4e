"""The newest offset of each key: what compaction keeps of a log is decided by this map.

Kafka's map holds a hash of 16 bytes and an offset of 8 for each key. This one is a dict, which
costs several times as much and is told so (`BYTES_PER_KEY`): fewer keys fit into the same
`log.cleaner.dedupe.buffer.size`, and a log with more of them takes more passes to clean. Keys of up
to 15 bytes stand for themselves, longer ones for a digest of 16, so that the two cannot be taken
for one another.

When all keys are in it, what it says is spread over the offsets that it was made of, a byte each
(`marks`), so that a batch of which all records stay, or none, need not be looked into again:

    bit 0    the newest of its key            bit 1    a tombstone
"""

from __future__ import annotations

from hashlib import blake2b

from barnabas.records.batch import BatchHeader

SHORT_KEY_BYTES = 15
"""Keys that are no longer than this are in the map as they are."""
DIGEST_BYTES = 16

BYTES_PER_KEY = 208
"""The key's bytes object (64), its offset's int (32), and the dict's share while it grows (112)."""

NEWEST, TOMBSTONE = 1, 2
_MARKS_SHARE = 4  # of the memory that marks may take; in a log full of gaps they would take all


def fold(key: bytes) -> bytes:
    """What stands for a key in the map. Nobody can make two keys that fold alike: that would
    delete another's record, so the digest is not Kafka's MD5."""
    if len(key) <= SHORT_KEY_BYTES:
        return key
    return blake2b(key, digest_size=DIGEST_BYTES).digest()


class KeyMap:
    """The newest offsets, by folded keys, of a log from `first_offset` to `latest_offset`."""

    __slots__ = ("_buffer_bytes", "first_offset", "latest_offset", "marks", "offsets")

    def __init__(self, buffer_bytes: int, first_offset: int = 0) -> None:
        self._buffer_bytes = buffer_bytes
        self.offsets: dict[bytes, int] = {}
        self.first_offset = first_offset
        self.latest_offset = first_offset - 1
        """Every record up to here is in the map: behind it nothing is known, and all is kept."""
        self.marks: bytearray | None = bytearray()
        """From the first offset on; None if they would have taken too much."""

    def has_room(self, header: BatchHeader) -> bool:
        """Whether a batch may be added whole. The first one always may: a pass that adds nothing
        would be repeated for ever."""
        count = len(self.offsets) + header.record_count
        marks = 0 if self.marks is None else len(self.marks)
        return not self.offsets or count * BYTES_PER_KEY + marks <= self._buffer_bytes

    def make_marks(self, last_offset: int) -> bytearray | None:
        """The marks, with those up to an offset."""
        marks = self.marks
        if marks is not None:
            missing = last_offset + 1 - self.first_offset - len(marks)
            if len(marks) + missing > self._buffer_bytes // _MARKS_SHARE:
                marks = self.marks = None
            elif missing > 0:
                marks += bytes(missing)
        return marks

    def finish(self) -> None:
        """All keys are in it."""
        marks, first_offset = self.marks, self.first_offset
        if marks is not None:
            for offset in self.offsets.values():
                marks[offset - first_offset] |= NEWEST

    def marks_of(self, header: BatchHeader) -> bytearray | None:
        """Of a batch's records, one behind the other; None if nobody knows which is which."""
        begin = header.base_offset - self.first_offset
        end = begin + header.last_offset_delta + 1
        is_whole = header.record_count == header.last_offset_delta + 1
        if self.marks is None or begin < 0 or end > len(self.marks) or not is_whole:
            return None
        return self.marks[begin:end]
