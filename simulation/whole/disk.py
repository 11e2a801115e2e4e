"""One machine's disk: the tree of its files, the process working on it, and its faults.

It outlives the processes on it. They are numbered; what an earlier process still holds can no
longer be used. The disk may be full or broken under some directory until it is healed. Any
operation that changes it may be the last of a process, in the middle of a turn (`strike`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NoReturn, Protocol

from barnabas.clock import Clock
from simulation.whole import costs
from simulation.whole.inodes import Change, DirectoryInode, Edit, FileInode, Inode
from simulation.whole.strike import Strike

_LONGEST_NAME_BYTES = 255
_CHARACTER_BYTES = 4  # at most, in UTF-8


class Spend(Protocol):
    def __call__(self, us: int, what: str, more_us: int = 0, until_us: int = 0) -> None:
        """Charge an operation of this kind with its price (`costs`), and with `more_us` in
        addition before `until_us`, the end of the time in which the disk is slow."""


def _free(us: int, what: str, more_us: int = 0, until_us: int = 0) -> None:
    """Charge nothing: the time of this disk is not measured."""


class Fault:
    """Prevents writes under a path after this many more bytes."""

    __slots__ = ("code", "left_bytes", "path")

    def __init__(self, path: Path, code: int, left_bytes: int) -> None:
        self.path = path
        self.code = code
        self.left_bytes = left_bytes

    @property
    def is_full(self) -> bool:
        """Return whether the disk is full rather than broken. Operations that need no room still
        work on a full disk.
        """
        return self.code == errno.ENOSPC


class SimDisk:
    """The disk. Paths are absolute; relative ones begin at the root."""

    __slots__ = (
        "_changed_files",
        "_changed_names",
        "_faults",
        "_hangs",
        "clock",
        "locked",
        "most_open",
        "open_files",
        "process",
        "root",
        "slow_sync_us",
        "slow_until_us",
        "spend",
        "strike",
    )

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.root = DirectoryInode(clock.wall_ms())
        self.process = 0
        """The number of the process that runs on it."""
        self.locked: dict[FileInode, None] = {}
        self.open_files = 0
        """The number of files that this process has open."""
        self.most_open: int | None = None
        """The number of files that it may have open."""
        self.strike: Strike | None = None
        """The strike that will kill its process, or the next one if none runs."""
        self.spend: Spend = _free
        self.slow_sync_us = 0
        """By how much each sync is slower before `slow_until_us`."""
        self.slow_until_us = 0
        self._faults: list[Fault] = []
        self._hangs: list[tuple[Path, int]] = []
        self._changed_names: dict[DirectoryInode, None] = {}
        self._changed_files: dict[FileInode, None] = {}

    # --- what happens to the machine -------------------------------------------------------------

    def next_process(self) -> None:
        """Count the next process: the previous one is dead, and its locks are free."""
        self.process += 1
        self.open_files = 0
        self.locked.clear()

    def lose_power(self, random: Random) -> None:
        self.next_process()
        for directory in self._changed_names:
            directory.keep_some(random)
        for directory in self._changed_names:
            directory.forget_the_rest()
        for file in self._changed_files:
            file.lose_power(random)
        self._changed_names.clear()
        self._changed_files.clear()
        self._let_cool(self.root)

    def settle(self) -> None:
        """Bring everything onto the disk."""
        for directory in self._changed_names:
            directory.sync()
        for file in self._changed_files:
            file.sync()
        self._changed_names.clear()
        self._changed_files.clear()

    def fail(self, path: Path, code: int, after_bytes: int) -> None:
        self._faults.append(Fault(path, code, after_bytes))

    def heal(self, path: Path) -> None:
        self._faults = [fault for fault in self._faults if fault.path != path]

    def hang(self, path: Path, until_us: int) -> None:
        """Make each change at or under a path last until this time."""
        self._hangs.append((path, until_us))

    def go_on(self) -> None:
        """Undo each `hang`."""
        self._hangs.clear()

    def hangs_until_us(self, path: Path) -> int:
        """Return the time until which a change there lasts at least."""
        return max((until for each, until in self._hangs if path.is_relative_to(each)), default=0)

    @property
    def is_spoiled(self) -> bool:
        """Return whether any part of the disk is full, broken or hanging."""
        return bool(self._faults or self._hangs)

    def fault(self, path: Path) -> Fault | None:
        """Return the fault at this path."""
        for fault in self._faults:
            if path.is_relative_to(fault.path):
                return fault
        return None

    # --- files -----------------------------------------------------------------------------------

    def find(self, path: Path) -> Inode:
        inode: Inode = self.root
        for name in _names(path):
            if not isinstance(inode, DirectoryInode):
                raise os_error(errno.ENOTDIR, path)
            found = inode.names.get(_checked(name, path))
            if found is None:
                raise os_error(errno.ENOENT, path)
            inode = found
        return inode

    def file(self, path: Path, *, create: bool) -> FileInode:
        """Return a file that will be opened for writing."""
        if not _names(path):
            raise os_error(errno.EISDIR, path)
        self.check_descriptors(path)
        self.spend(costs.OPEN_US, "open")
        directory, name = self.place(path)
        inode = directory.names.get(name)
        if isinstance(inode, DirectoryInode):
            raise os_error(errno.EISDIR, path)
        if inode is None:
            if not create:
                raise os_error(errno.ENOENT, path)
            self.check_room(path)
            self._wait(path)
            inode = FileInode(self.clock.wall_ms())
            self.change((directory, name, inode))
        return inode

    def directory(self, path: Path) -> DirectoryInode:
        inode = self.find(path)
        if not isinstance(inode, DirectoryInode):
            raise os_error(errno.ENOTDIR, path)
        return inode

    def place(self, path: Path) -> tuple[DirectoryInode, str]:
        """Return the directory that names the path, whether or not the name exists."""
        return self.directory(path.parent), _checked(path.name, path)

    def change(self, *edits: Edit) -> None:
        """Change all these names at once."""
        if self._is_struck():
            self._fall()
        self.spend(costs.NAME_US, "change of a name")
        made = Change(edits, self.clock.wall_ms())
        for directory in made.directories():
            self._changed_names[directory] = None
        for _, name, inode in edits:
            if inode is not None and self.strike is not None:
                self.strike.named(name)

    def _wait(self, path: Path) -> None:
        """Wait while the disk hangs at this path, before something there is changed."""
        if self._hangs:
            until_us = self.hangs_until_us(path)
            self.spend(0, "hang", max(0, until_us - 1000 * self.clock.monotonic_ms()), until_us)

    def write(self, path: Path, file: FileInode, position: int, data: bytes | memoryview) -> None:
        """Write as much as there is room for. Raises an error if there is not enough room."""
        if self._is_struck():
            assert self.strike is not None
            with suppress(OSError):
                self._write(path, file, position, data[: self.strike.share(len(data))])
            self._fall()
        self._write(path, file, position, data)

    def _write(self, path: Path, file: FileInode, position: int, data: bytes | memoryview) -> None:
        self._wait(path)
        self.spend(costs.WRITE_US + len(data) * costs.WRITE_KIB_US // 1024, "write")
        fault = self.fault(path)
        room = len(data)
        if fault is not None:
            room = min(room, fault.left_bytes)
            fault.left_bytes -= room
        if room:
            file.write(position, data[:room])
            self.note(file)
        if fault is not None and room < len(data):
            raise os_error(fault.code, path)

    def truncate(self, path: Path, file: FileInode, size: int) -> None:
        self.check_health(path)
        self._wait(path)
        if size < 0:
            raise os_error(errno.EINVAL, path)
        if self._is_struck():
            self._fall()
        file.truncate(size)
        self.note(file)

    def note(self, file: FileInode) -> None:
        """Record that a file's bytes have changed."""
        file.modified_ms = self.clock.wall_ms()
        self._changed_files[file] = None

    def sync(self, path: Path, inode: Inode) -> None:
        self.check_descriptors(path)
        if self._is_struck():
            self._fall()
        self._wait(path)
        self.spend(costs.SYNC_US, "sync", self.slow_sync_us, self.slow_until_us)
        try:
            self.check_health(path)
        except OSError:
            if isinstance(inode, FileInode):
                inode.fail_sync()
            raise
        inode.sync()
        if isinstance(inode, FileInode):
            if inode.is_durable:
                self._changed_files.pop(inode, None)
        else:
            self._changed_names.pop(inode, None)

    def check_health(self, path: Path) -> None:
        """Raise an error if nothing can be changed there."""
        fault = self.fault(path)
        if fault is not None and not fault.is_full and not fault.left_bytes:
            raise os_error(fault.code, path)

    def check_descriptors(self, path: Path) -> None:
        """Raise an error if no further file can be opened."""
        if self.most_open is not None and self.open_files >= self.most_open:
            raise os_error(errno.EMFILE, path)

    def check_room(self, path: Path) -> None:
        """Raise an error if nothing can be changed or added there."""
        fault = self.fault(path)
        if fault is not None and not fault.left_bytes:
            raise os_error(fault.code, path)

    def used_bytes(self, directory: DirectoryInode) -> int:
        return sum(
            len(inode.data) if isinstance(inode, FileInode) else self.used_bytes(inode)
            for inode in directory.names.values()
        )

    def _is_struck(self) -> bool:
        return self.strike is not None and self.strike.falls()

    def _fall(self) -> NoReturn:
        strike, self.strike = self.strike, None
        assert strike is not None
        strike.fall()

    def _let_cool(self, directory: DirectoryInode) -> None:
        """Empty the page cache, which is lost with the power."""
        for inode in directory.names.values():
            if isinstance(inode, FileInode):
                inode.is_cached = False
            else:
                self._let_cool(inode)


def os_error(code: int, path: Path) -> OSError:
    return OSError(code, os.strerror(code), str(path))


def _names(path: Path) -> Sequence[str]:
    parts = path.parts
    return parts[1:] if parts and parts[0].startswith("/") else parts


def _checked(name: str, path: Path) -> str:
    # Only a name of many characters may have too many bytes.
    if _CHARACTER_BYTES * len(name) > _LONGEST_NAME_BYTES < len(os.fsencode(name)):
        raise os_error(errno.ENAMETOOLONG, path)
    return name
