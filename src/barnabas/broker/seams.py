"""Defines the seams between a broker and the machine. The simulator replaces these seams. The
metadata store is also a seam, but it is passed separately because brokers share it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

from barnabas.broker.network.listeners import Listener, bind
from barnabas.broker.runtime.descriptors import Descriptors, of_this_process
from barnabas.broker.runtime.disk_pulse import DiskPulse
from barnabas.broker.runtime.disk_threads import DiskThreads, new_disk_threads
from barnabas.broker.runtime.machine_memory import of_this_machine
from barnabas.clock import Clock, Random, SystemClock, SystemRandom
from barnabas.cluster.journal_disk import OS_DISK, JournalDisk
from barnabas.named_tuple import NamedTuple
from barnabas.storage.files import Files, OsFiles

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # exists only on Linux


def _nothing() -> None:
    """Do nothing, because a broker must not configure the garbage collector of a shared process."""


class Seams(NamedTuple):
    """The machine that a broker runs on. Connections are opened through the event loop of the
    broker.
    """

    clock: Clock
    random: Random
    files: Files
    bind: Callable[[Listener, int], list[socket.socket]]
    """Returns the listening sockets for a listener with this backlog (see `listeners.bind`)."""
    boot_id: Callable[[], bytes]
    """Identifies the machine's current boot. Empty if the boot is unknown."""
    threads: Callable[[], DiskThreads] = new_disk_threads
    """Creates the threads for the blocking disk I/O of one broker."""
    cleans_inline: bool = False
    """Whether logs must be compacted in this process, without a child process (`log_cleaner`)."""
    descriptors: Callable[[], Descriptors] = of_this_process
    journals: JournalDisk = OS_DISK
    """Stores a standalone broker's metadata. It is `files`, adapted for `cluster`."""
    pulse: Callable[..., DiskPulse] = DiskPulse
    """Detects when a disk hangs."""
    memory_bytes: Callable[[], int] = of_this_machine
    keep_objects: Callable[[], None] = _nothing
    """Marks the objects that are now in memory as long-lived, so that the cycle collector skips
    them.
    """


def system_seams() -> Seams:
    """Return the seams that use the real machine."""
    return Seams(SystemClock(), SystemRandom(), OsFiles(), bind, _boot_id)


def interposed_seams(files: OsFiles | None = None) -> Seams:
    """Return the real seams, except that a test can disturb the disk and the clock while they are
    in use.

    `files` is the disk to use, or None for the real disk.
    """
    from barnabas.broker.runtime.interposed_clock import InterposedClock
    from barnabas.broker.runtime.interposed_files import InterposedFiles

    return system_seams()._replace(
        clock=InterposedClock(), files=InterposedFiles(files or OsFiles())
    )


def _boot_id() -> bytes:
    try:
        return OsFiles().read(_BOOT_ID)
    except OSError:
        # The boot id is unknown if the file cannot be read or the system is not Linux.
        return b""
