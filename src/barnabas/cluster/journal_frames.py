"""Encodes and reads the frames in the embedded store's files.

Frames after a damaged one are read as well.

    frame:    u32 1 << 31 | length of the payload
              u32 CRC-32 of everything else in the frame
              u32 number of earlier commits that may not have been on disk when it was written
              payload: i64 zxid | content                                          (big-endian)

    seal:     a frame without content: every commit up to its zxid is on disk

    earlier:  u32 length of the payload | u32 CRC-32 of the payload | payload

The number of unsynced commits makes it possible to tell damage from a crash. A power failure may
destroy any part of the data that was not synced, so an earlier frame may be lost while a later one
is kept. However, if a later frame proves that a missing frame was on disk, something else destroyed
it.
"""

from __future__ import annotations

import zlib
from struct import Struct

from barnabas.named_tuple import NamedTuple

_HEADER = Struct(">III")
_EARLIER_HEADER = Struct(">II")
_ZXID = Struct(">q")
_CHECKED = Struct(">II")  # the part of the header that the checksum covers
_IS_COUNTED = 1 << 31
_MOST_COMMITS = 1 << 40


class Frame(NamedTuple):
    """A frame that was read as a whole, and the position at which it ends."""

    payload: bytes
    zxid: int
    unsynced: int
    end: int
    is_earlier: bool

    @property
    def is_seal(self) -> bool:
        return len(self.payload) == _ZXID.size

    @property
    def proven_zxid(self) -> int:
        """The last commit that must have been on disk when the frame was written."""
        return self.zxid if self.is_seal else self.zxid - 1 - self.unsynced


class Frames(NamedTuple):
    """The frames in a file that could be read."""

    whole: tuple[Frame, ...]
    damaged_at: int | None
    """The position of the first damaged bytes that are followed by a whole frame, or None."""
    end: int
    """The position after the last whole frame. All bytes after it are torn."""

    @property
    def begins_late(self) -> bool:
        """True if commits are missing at the beginning.

        The first journal of a store begins with an empty seal, followed by commit 1.
        """
        if self.damaged_at is not None or not self.whole:
            return False
        first = self.whole[0]
        return first.zxid > (0 if first.is_seal else 1)


def zxid_of(payload: bytes) -> int:
    """Return the number of a commit, or the number of the last commit in a tree."""
    zxid: int = _ZXID.unpack_from(payload)[0]
    return zxid


def frame(payload: bytes, unsynced: int = 0) -> bytes:
    word = _IS_COUNTED | len(payload)
    crc = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(word, unsynced)))
    return _HEADER.pack(word, crc, unsynced) + payload


def seal(zxid: int) -> bytes:
    """Return a seal. It shows whether the frame before it was destroyed by a crash or by damage."""
    return frame(_ZXID.pack(zxid))


def read_frames(content: bytes) -> Frames:
    """Read all whole frames in a file, including those that follow damaged data."""
    whole: list[Frame] = []
    damaged_at: int | None = None
    position = end = 0
    while position < len(content):
        found = _read(content, position)
        if found is None:
            # Commits that follow damaged data must be found, because another copy may contain the
            # damaged commits.
            last_zxid = whole[-1].zxid if whole else 0
            found = _search(content, position + 1, last_zxid)
            if found is None:
                break
            if damaged_at is None:
                damaged_at = position
        whole.append(found)
        position = end = found.end
    return Frames(tuple(whole), damaged_at, end)


def _search(content: bytes, position: int, last_zxid: int) -> Frame | None:
    """Find the next whole frame that contains a later commit than `last_zxid`.

    Frames with earlier commits are the rest of a journal that was replaced by a snapshot.
    """
    # A commit is longer than one byte, so there cannot be more commits than bytes.
    most = last_zxid + len(content) if last_zxid else _MOST_COMMITS
    for at in range(position, len(content) - _EARLIER_HEADER.size - _ZXID.size + 1):
        header = _HEADER if content[at] & 0x80 else _EARLIER_HEADER
        if at + header.size + _ZXID.size > len(content):
            continue
        (zxid,) = _ZXID.unpack_from(content, at + header.size)
        # If no frame can begin here, do not compute a checksum over all the bytes that follow.
        if last_zxid < zxid <= most:
            found = _read(content, at)
            if found is not None and found.zxid > last_zxid:
                return found
    return None


def _read(content: bytes, position: int) -> Frame | None:
    """Return the whole frame that begins at this position, if there is one."""
    left = len(content) - position
    if left < _EARLIER_HEADER.size + _ZXID.size:
        return None
    word, crc = _EARLIER_HEADER.unpack_from(content, position)
    is_counted = bool(word & _IS_COUNTED)
    header = _HEADER if is_counted else _EARLIER_HEADER
    length = word & ~_IS_COUNTED
    if not _ZXID.size <= length <= left - header.size:
        return None
    start = position + header.size
    payload = content[start : start + length]
    unsynced = 0
    # In the older format, a frame has no number of unsynced commits, and the checksum covers only
    # the payload.
    if is_counted:
        unsynced = _HEADER.unpack_from(content, position)[2]
        expected = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(word, unsynced)))
    else:
        expected = zlib.crc32(payload)
    if expected != crc:
        return None
    return Frame(payload, zxid_of(payload), unsynced, start + length, not is_counted)
