"""The files seam in memory: a broker's disk in the simulator.

Every call immediately does what `OsFiles` does, with the same errors. A process that has died
cannot use what it held: each call raises ProcessOver and changes nothing. `sendfile` is not
supported, since there is no descriptor.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random

from barnabas.clock import Clock
from barnabas.errors import CorruptData
from barnabas.records.batch import iterate_batches
from barnabas.storage.directory import RECOVERY_POINTS
from barnabas.storage.files import Bytes, Entry, Lock, Space
from simulation.whole import costs
from simulation.whole.disk import SimDisk, Spend, os_error
from simulation.whole.inodes import DirectoryInode, FileInode, Inode
from simulation.whole.lives import ProcessOver
from simulation.whole.strike import Strike

CAPACITY_BYTES = 1 << 40


class SimFiles:
    """One machine's files, for any process that runs on it; `mounted` returns them for one
    process."""

    __slots__ = ("_capacity_bytes", "_disk", "_process")

    def __init__(
        self,
        clock: Clock,
        directories: Sequence[Path] = (),
        capacity_bytes: int = CAPACITY_BYTES,
    ) -> None:
        """`directories` already exist, and stay whatever happens."""
        self._disk = SimDisk(clock)
        self._capacity_bytes = capacity_bytes
        self._process = -1
        for path in directories:
            self.make_directory(path)
        self._disk.settle()

    def mounted(self) -> SimFiles:
        """Return the same files for the process that begins now; they become useless once it has
        died.

        So a dead process does no harm by what it still does, such as closing its coroutines.
        """
        made = SimFiles(self._disk.clock, capacity_bytes=self._capacity_bytes)
        made._disk = self._disk
        made._process = self._disk.process
        return made

    # --- what happens to the machine -------------------------------------------------------------

    def process_died(self) -> None:
        """End the process, as `kill -9` does: everything written stays, and its locks are free."""
        self._disk.next_process()

    def power_cut(self, random: Random) -> None:
        """Cut the power: unsynced data may or may not survive; the process is dead as well."""
        self._disk.lose_power(random)

    def strike(self, strike: Strike) -> None:
        """Make the process die of this strike. Replaces an earlier strike."""
        self._disk.strike = strike

    def spare(self) -> None:
        """Undo `strike`, if it has not happened yet."""
        self._disk.strike = None

    def fail(self, path_prefix: Path, code: int, after_bytes: int = 0) -> None:
        """Refuse changes at or under a path, once this many more bytes have been written there.

        With ENOSPC the disk is full: it takes no bytes and no new names. With EIO, or any other
        error, it is broken: nothing can be changed, and a sync fails. Readable data stays readable.
        """
        self._disk.fail(path_prefix, code, after_bytes)

    def heal(self, path_prefix: Path) -> None:
        """Undo each `fail` of this path."""
        self._disk.heal(path_prefix)

    def hang(self, path_prefix: Path, until_us: int) -> None:
        """Make changes at or under a path wait until this time, without an error."""
        self._disk.hang(path_prefix, until_us)

    def go_on(self) -> None:
        """Undo each `hang`."""
        self._disk.go_on()

    def hangs_until_us(self, path: Path) -> int:
        """Return the time until which a path hangs, or 0 if it does not."""
        return self._disk.hangs_until_us(path)

    def empty(self, path: Path) -> None:
        """Replace the disk of a directory with a new, empty one. No process may run on it."""
        self._disk.settle()
        self._disk.directory(path).empty()

    def measure(self, spend: Spend) -> None:
        """Make each operation call this with its price."""
        self._disk.spend = spend

    def slow(self, sync_us: int, until_us: int = 0) -> None:
        """Make every sync before this time slower by `sync_us`; 0 ends this."""
        self._disk.slow_sync_us, self._disk.slow_until_us = sync_us, until_us

    def limit(self, more: int | None) -> None:
        """Limit how many more files and directories the process may have open at one time; None
        removes the limit."""
        self._disk.most_open = None if more is None else self._disk.open_files + more

    @property
    def is_spoiled(self) -> bool:
        """Return whether any part of it is full or broken."""
        return self._disk.is_spoiled

    def flip(
        self, path_prefix: Path, random: Random, *, with_snapshots: bool = False
    ) -> Callable[[], None] | None:
        """Make a bit read wrong in a segment below the recovery point of its log, but not in a
        broker's own topic. Returns a function that undoes this, or None if there is no such
        segment.

        `with_snapshots`: also in the snapshots of the log's producers, so that a recovery must read
        the segment.

        A record that is damaged above the recovery point is lost at the next recovery, as in a
        power cut, and nothing is promised about it.
        """
        found = [
            (directory, each)
            for directory, each in self._recovered(path_prefix)
            if each.is_durable and each.data
        ]
        if not found:
            return None
        directory, inode = random.choice(found)
        try:
            batches = list(iterate_batches(inode.data))
        except CorruptData:
            return None  # a length in it already reads wrong
        if not batches:
            return None
        begin, header = random.choice(batches)
        # No checksum covers the base offset and the leader epoch at the front: as in Kafka, wrong
        # values there go undetected.
        place = random.choice((random.randrange(8, 12), random.randrange(16, header.size_bytes)))
        flips = [(inode, begin + place, 1 << random.randrange(8))]
        for name, snapshot in sorted(directory.names.items()) if with_snapshots else ():
            if name.endswith(".snapshot") and isinstance(snapshot, FileInode) and snapshot.data:
                place = random.randrange(len(snapshot.data))
                flips.append((snapshot, place, 1 << random.randrange(8)))
        for flipped, place, mask in flips:
            flipped.flip(place, mask)

        def undo() -> None:
            for flipped, place, _ in flips:
                flipped.unflip(place)

        return undo

    def damage(self, path: Path, random: Random) -> bool:
        """Make a bit of a file read wrong permanently; returns False if there is no such file,
        or it is empty."""
        try:
            inode = self._disk.find(path)
        except FileNotFoundError:
            return False
        if not isinstance(inode, FileInode) or not inode.data:
            return False
        inode.flip(random.randrange(len(inode.data)), 1 << random.randrange(8))
        return True

    def lose(self, path: Path) -> bool:
        """Remove a file permanently; returns False if it does not exist."""
        try:
            self._disk.find(path)
        except FileNotFoundError:
            return False
        directory, name = self._disk.place(path)
        self._disk.change((directory, name, None))
        self._disk.settle()
        return True

    def _recovered(self, path: Path) -> list[tuple[DirectoryInode, FileInode]]:
        """Return the `.log` files in the directories of users' partitions under a log directory
        that end below the recovery point in its checkpoint, each with its directory."""
        names = self._disk.directory(path).names
        checkpoint = names.get(RECOVERY_POINTS)
        if not isinstance(checkpoint, FileInode):
            return []
        # A power cut may have left the file empty: then nothing is known to be recovered.
        lines = checkpoint.data.decode().splitlines()[2:]
        found: list[tuple[DirectoryInode, FileInode]] = []
        for topic, partition, recovery_point in sorted(line.split() for line in lines):
            directory = names.get(f"{topic}-{partition}")
            if topic.startswith("__") or not isinstance(directory, DirectoryInode):
                continue
            logs = sorted(name for name in directory.names if name.endswith(".log"))
            found += [
                (directory, inode)
                for name, after in pairwise(logs)
                if int(after.removesuffix(".log")) <= int(recovery_point)
                and isinstance(inode := directory.names[name], FileInode)
            ]
        return found

    # --- the seam --------------------------------------------------------------------------------

    def open(self, path: Path, *, create: bool = False) -> SimFile:
        return SimFile(self._at(path), path, self._disk.file(path, create=create))

    def read(self, path: Path) -> bytes:
        inode = self._at(path).find(path)
        if isinstance(inode, DirectoryInode):
            raise os_error(errno.EISDIR, path)
        self._disk.check_descriptors(path)
        self._disk.spend(costs.OPEN_US + costs.read_us(len(inode.data)), "read")
        return bytes(inode.data)

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        disk = self._at(path)
        inode = disk.file(path, create=True)
        disk.truncate(path, inode, 0)
        if data:
            disk.write(path, inode, 0, data)
        if sync:
            disk.sync(path, inode)

    def replace(self, source: Path, target: Path) -> None:
        disk = self._at(source)
        source_directory, source_name = disk.place(source)
        target_directory, target_name = disk.place(target)
        moved = source_directory.names.get(source_name)
        if moved is None:
            raise os_error(errno.ENOENT, source)
        replaced = target_directory.names.get(target_name)
        if isinstance(moved, DirectoryInode) and _holds(moved, target_directory):
            raise os_error(errno.EINVAL, source)
        if isinstance(replaced, DirectoryInode) and _holds(replaced, source_directory):
            raise os_error(errno.ENOTEMPTY, target)
        if moved is replaced:
            return
        _check_replaceable(moved, replaced, target)
        disk.check_health(source)
        disk.check_health(target)
        disk.change((source_directory, source_name, None), (target_directory, target_name, moved))

    def remove(self, path: Path) -> None:
        disk = self._at(path)
        try:
            inode = disk.find(path)
        except FileNotFoundError:
            return
        if isinstance(inode, DirectoryInode):
            raise os_error(errno.EISDIR, path)
        disk.check_health(path)
        directory, name = disk.place(path)
        disk.change((directory, name, None))

    def make_directory(self, path: Path) -> None:
        disk = self._at(path)
        try:
            found = disk.find(path)
        except FileNotFoundError:
            self.make_directory(path.parent)
            disk.check_room(path)
            directory, name = disk.place(path)
            disk.change((directory, name, DirectoryInode(disk.clock.wall_ms())))
        else:
            if isinstance(found, FileInode):
                raise os_error(errno.EEXIST, path)

    def remove_directory(self, path: Path) -> None:
        for entry in self.list(path):
            if entry.is_directory:
                self.remove_directory(path / entry.name)
            else:
                self.remove(path / entry.name)
        self._disk.check_health(path)
        directory, name = self._disk.place(path)
        self._disk.change((directory, name, None))

    def list(self, path: Path) -> list[Entry]:
        names = self._at(path).directory(path).names
        self._disk.check_descriptors(path)
        self._disk.spend(costs.LIST_US + costs.ENTRY_US * len(names), "list")
        return sorted(
            Entry(name, True, 0)
            if isinstance(inode, DirectoryInode)
            else Entry(name, False, len(inode.data))
            for name, inode in names.items()
        )

    def modified_ms(self, path: Path) -> int:
        return self._at(path).find(path).modified_ms

    def permissions(self, path: Path) -> int:
        self._at(path).find(path)
        return 0o700

    def space(self, path: Path) -> Space:
        disk = self._at(path)
        disk.find(path)
        usable_bytes = self._capacity_bytes - disk.used_bytes(disk.root)
        fault = disk.fault(path)
        if fault is not None and fault.is_full:
            usable_bytes = min(usable_bytes, fault.left_bytes)
        return Space(self._capacity_bytes, max(usable_bytes, 0))

    def sync(self, path: Path) -> None:
        disk = self._at(path)
        disk.sync(path, disk.find(path))

    def lock(self, path: Path) -> Lock:
        disk = self._at(path)
        inode = disk.file(path, create=True)
        if inode in disk.locked:
            raise os_error(errno.EAGAIN, path)
        disk.locked[inode] = None
        return _SimLock(disk, inode)

    def _at(self, path: Path) -> SimDisk:
        if self._process not in (-1, self._disk.process):
            raise ProcessOver
        return self._disk


class SimFile:
    """An open file of one process."""

    __slots__ = ("_disk", "_holders", "_inode", "_path", "_process")

    def __init__(self, disk: SimDisk, path: Path, inode: FileInode) -> None:
        self._disk = disk
        self._path = path
        self._inode = inode
        self._process = disk.process
        self._holders = 1
        disk.open_files += 1

    def acquire(self) -> None:
        assert self._holders > 0, "the file is closed"
        self._holders += 1

    def release(self) -> None:
        assert self._holders > 0, "released more often than acquired"
        self._holders -= 1
        if not self._holders and self._process == self._disk.process:
            self._disk.open_files -= 1

    def fileno(self) -> int:
        raise os_error(errno.ENOTSUP, self._path)

    def pread(self, size: int, position: int) -> bytes:
        found = bytes(self._file().data[position : position + size])
        self._disk.spend(costs.read_us(len(found)), "read")
        return found

    def write(self, position: int, data: Bytes) -> None:
        file = self._file()
        if data:
            self._disk.write(self._path, file, position, memoryview(data))

    def writev(self, position: int, buffers: Sequence[Bytes]) -> None:
        self.write(position, b"".join(buffers))

    def truncate(self, size: int) -> None:
        self._disk.truncate(self._path, self._file(), size)

    def size(self) -> int:
        return len(self._file().data)

    def sync(self) -> None:
        self._disk.sync(self._path, self._file())

    def is_cached(self, position: int, size: int) -> bool:
        """Return whether it is cached. After a power cut, nothing is cached until it has been
        warmed.
        """
        return self._file().is_cached

    def warm(self, position: int, size: int) -> None:
        file = self._file()
        if not file.is_cached:
            self._disk.spend(costs.COLD_US, "cold read")
        file.is_cached = True

    def _file(self) -> FileInode:
        if self._process != self._disk.process:
            raise ProcessOver
        if self._holders == 0:
            raise os_error(errno.EBADF, self._path)
        return self._inode


class _SimLock:
    """A lock that is free once its process has died; releasing it then does nothing."""

    __slots__ = ("_disk", "_inode", "_process")

    def __init__(self, disk: SimDisk, inode: FileInode) -> None:
        self._disk = disk
        self._inode = inode
        self._process = disk.process

    def release(self) -> None:
        if self._process == self._disk.process:
            self._disk.locked.pop(self._inode, None)


def _holds(directory: DirectoryInode, wanted: DirectoryInode) -> bool:
    """Return whether the wanted directory is this directory or somewhere under it."""
    return directory is wanted or any(
        isinstance(inode, DirectoryInode) and _holds(inode, wanted)
        for inode in directory.names.values()
    )


def _check_replaceable(moved: Inode, replaced: Inode | None, target: Path) -> None:
    if replaced is None:
        return
    if isinstance(moved, FileInode) and isinstance(replaced, DirectoryInode):
        raise os_error(errno.EISDIR, target)
    if isinstance(moved, DirectoryInode):
        if isinstance(replaced, FileInode):
            raise os_error(errno.ENOTDIR, target)
        if replaced.names:
            raise os_error(errno.ENOTEMPTY, target)
