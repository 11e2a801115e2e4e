"""The contents of files and directories on a disk: as they are now, and as a power cut would leave
them.

A file's bytes are safe once it has been synced. Of the pages written since then, any may be on the
disk, and its size may be any that it has had since. A directory's names are safe once it has been
synced; of the changes since then, those up to some time survive. One change may concern two
directories, and is in both or in neither. That is the worst that a journaling file system does.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

PAGE_BYTES = 4096
_SHARES = (0.0, 0.5, 0.9, 1.0)  # shares of the pages that the kernel has written by itself


class FileInode:
    """A file under any names; if it is open, it remains after its last name is removed."""

    __slots__ = (
        "_dirty",
        "_durable",
        "_flipped",
        "_lost",
        "_sizes",
        "data",
        "is_cached",
        "modified_ms",
    )

    def __init__(self, now_ms: int) -> None:
        self.data = bytearray()
        self.is_cached = True
        self.modified_ms = now_ms
        self._durable = bytearray()
        self._dirty: set[int] = set()
        self._lost: set[int] = set()
        self._sizes = [0]
        """The durable size, and all sizes since."""
        self._flipped: dict[int, int] = {}  # which bits read wrong, by place

    @property
    def is_durable(self) -> bool:
        return not self._dirty and not self._lost and len(self._sizes) == 1

    def write(self, position: int, data: bytes | memoryview) -> None:
        """Write at least one byte."""
        self._forget_flips(position, position + len(data))
        if position > len(self.data):
            self.data.extend(bytes(position - len(self.data)))
        self.data[position : position + len(data)] = data
        self._changed(position, position + len(data))

    def truncate(self, size: int) -> None:
        before = len(self.data)
        self._forget_flips(size, before)
        for place in list(self._flipped):
            self.unflip(place)  # the segment is its log's last one now, which recovery reads
        del self.data[size:]
        self.data.extend(bytes(max(size - before, 0)))
        self._changed(size, before)  # no page if it has grown: it reads as zeros

    def flip(self, place: int, mask: int) -> None:
        """Make some bits of a byte read wrong from now on."""
        self._turn(place, mask, self.data, self._durable)
        self._flipped[place] = self._flipped.get(place, 0) ^ mask

    def unflip(self, place: int) -> None:
        """Make the bits read right again, unless the byte has been overwritten."""
        self._turn(place, self._flipped.pop(place, 0), self.data, self._durable)

    def _forget_flips(self, start: int, end: int) -> None:
        """Forget flipped bits that are overwritten or cut off."""
        if not self._flipped:
            return
        for place in [each for each in self._flipped if start <= each < end]:
            self._turn(place, self._flipped.pop(place), self._durable)

    @staticmethod
    def _turn(place: int, mask: int, *copies: bytearray) -> None:
        for data in copies:
            if place < len(data):
                data[place] ^= mask

    def sync(self) -> None:
        size, durable = len(self.data), self._durable
        del durable[size:]
        durable.extend(bytes(size - len(durable)))
        for page in self._dirty:
            start = page * PAGE_BYTES
            durable[start : start + PAGE_BYTES] = self.data[start : start + PAGE_BYTES]
        self._dirty.clear()
        self._sizes = [size]

    def fail_sync(self) -> None:
        """Fail a sync: the kernel forgets that these pages were to be written."""
        self._lost |= self._dirty
        self._dirty.clear()

    def lose_power(self, random: Random) -> None:
        """Keep or lose, page by page, what was not durable."""
        size = self._size_found(random)
        found = self._durable[:size]
        found.extend(bytes(size - len(found)))
        share = random.choice(_SHARES)
        for page in sorted(self._dirty | self._lost):
            start = page * PAGE_BYTES
            if random.random() < share and start < min(size, len(self.data)):
                now = self.data[start : start + PAGE_BYTES]
                now.extend(bytes(PAGE_BYTES - len(now)))
                found[start : start + PAGE_BYTES] = now
        self.data = found[:size]
        self._durable = bytearray(self.data)
        self._dirty.clear()
        self._lost.clear()
        self._sizes = [size]

    def _size_found(self, random: Random) -> int:
        sizes = self._sizes
        index = random.choice((0, len(sizes) - 1, random.randrange(len(sizes))))
        size = sizes[index]
        if index and sizes[index - 1] < size and random.random() < 0.3:
            # One large write reaches the disk page by page.
            cut = random.randint(sizes[index - 1], size) // PAGE_BYTES * PAGE_BYTES
            size = max(cut, sizes[index - 1])
        return size

    def _changed(self, start: int, end: int) -> None:
        pages = range(start // PAGE_BYTES, -(-end // PAGE_BYTES))
        self._dirty.update(pages)
        self._lost.difference_update(pages)
        if self._sizes[-1] != len(self.data):
            self._sizes.append(len(self.data))


class DirectoryInode:
    """A directory: names, of which the last changes may not be on the disk yet."""

    __slots__ = ("_durable", "_pending", "modified_ms", "names")

    def __init__(self, now_ms: int) -> None:
        self.names: dict[str, Inode] = {}
        self.modified_ms = now_ms
        self._durable: dict[str, Inode] = {}
        self._pending: list[Change] = []

    @property
    def is_durable(self) -> bool:
        return not self._pending

    def sync(self) -> None:
        self._settle(len(self._pending))

    def empty(self) -> None:
        """Remove all names, as on a new disk; every earlier change is on the old disk."""
        assert self.is_durable
        self.names.clear()
        self._durable.clear()

    def keep_some(self, random: Random) -> None:
        """Keep the changes up to some time, as a power cut does."""
        count = len(self._pending)
        self._settle(random.choice((0, count, random.randint(0, count))))

    def forget_the_rest(self) -> None:
        """Forget the other changes, once every directory has kept some."""
        self._pending.clear()
        self.names = dict(self._durable)

    def begin(self, change: Change) -> None:
        self._pending.append(change)

    def end(self, change: Change, name: str, inode: Inode | None) -> None:
        """Bring a change onto the disk, and with it all changes before it."""
        if change in self._pending:
            self._settle(self._pending.index(change))
            self._pending.remove(change)
        _enter(self._durable, name, inode)

    def _settle(self, count: int) -> None:
        for change in self._pending[:count]:
            if change in self._pending:
                change.settle()


Inode = FileInode | DirectoryInode

Edit = tuple[DirectoryInode, str, Inode | None]
"""The directory's entry with this name; None removes it."""


class Change:
    """Entries that change together."""

    __slots__ = ("_edits",)

    def __init__(self, edits: Sequence[Edit], now_ms: int) -> None:
        self._edits = edits
        for directory, name, inode in edits:
            _enter(directory.names, name, inode)
            directory.modified_ms = now_ms
        for directory in self.directories():
            directory.begin(self)

    def directories(self) -> list[DirectoryInode]:
        return list(dict.fromkeys(directory for directory, _, _ in self._edits))

    def settle(self) -> None:
        """Bring the change onto the disk."""
        for directory, name, inode in self._edits:
            directory.end(self, name, inode)


def _enter(names: dict[str, Inode], name: str, inode: Inode | None) -> None:
    if inode is None:
        names.pop(name, None)
    else:
        names[name] = inode
