"""The seams between a broker and the machine that it runs on; the simulator has its own.

The metadata store is the fourth seam and is passed separately, because brokers share it.
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
    """Do nothing: in a shared process, the collector is not the broker's business."""


class Seams(NamedTuple):
    """A broker's machine. Connections are opened through the event loop that runs the broker."""

    clock: Clock
    random: Random
    files: Files
    bind: Callable[[Listener, int], list[socket.socket]]
    """Returns listening sockets for (listener, backlog): see `listeners.bind`."""
    boot_id: Callable[[], bytes]
    """Identifies this boot of the machine; empty if the system does not say."""
    threads: Callable[[], DiskThreads] = new_disk_threads
    """The threads in which one broker's calls wait for the disk."""
    cleans_inline: bool = False
    """Compact logs in this process, if there can be no other (`log_cleaner`)."""
    descriptors: Callable[[], Descriptors] = of_this_process
    journals: JournalDisk = OS_DISK
    """Keeps the metadata of a broker on its own: `files`, in the form that `cluster` knows."""
    pulse: Callable[..., DiskPulse] = DiskPulse
    """Watches for a hanging disk."""
    memory_bytes: Callable[[], int] = of_this_machine
    keep_objects: Callable[[], None] = _nothing
    """Marks the objects now in memory as long-lived, so that the cycle collector skips them."""


def system_seams() -> Seams:
    """Return the machine that this process runs on."""
    return Seams(SystemClock(), SystemRandom(), OsFiles(), bind, _boot_id)


def interposed_seams(files: OsFiles | None = None) -> Seams:
    """Return this process's seams, with a disk and a clock that a test can disturb in use.

    `files` is the disk; None: the real disk.
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
        # Not Linux, or not readable: the boot stays unknown.
        return b""
