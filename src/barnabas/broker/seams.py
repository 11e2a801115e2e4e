"""The seams between a broker and the machine that it runs on; the simulator has its own.

The metadata store is the fourth and comes by itself, since brokers share it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.network.listeners import Listener, bind
from barnabas.broker.runtime.descriptors import Descriptors, of_this_process
from barnabas.broker.runtime.disk_pulse import DiskPulse
from barnabas.broker.runtime.disk_threads import DiskThreads, new_disk_threads
from barnabas.broker.runtime.machine_memory import of_this_machine
from barnabas.clock import Clock, Random, SystemClock, SystemRandom
from barnabas.cluster.journal_disk import OS_DISK, JournalDisk
from barnabas.storage.files import Files, OsFiles

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")  # Linux has it


def _nothing() -> None:
    """Do nothing: in a process that others share, the collector is not the broker's business."""


class Seams(NamedTuple):
    """A broker's machine. Connections are made through the event loop that the broker runs on."""

    clock: Clock
    random: Random
    files: Files
    bind: Callable[[Listener, int], list[socket.socket]]
    """Listening sockets for (listener, backlog): see `listeners.bind`."""
    boot_id: Callable[[], bytes]
    """Which boot of the machine this is; empty where the system does not say."""
    threads: Callable[[], DiskThreads] = new_disk_threads
    """Where one broker's calls wait for the disk."""
    cleans_inline: bool = False
    """Compact in this process, where there can be no other one (`log_cleaner`)."""
    descriptors: Callable[[], Descriptors] = of_this_process
    journals: JournalDisk = OS_DISK
    """Keeps the metadata of a broker that is alone: `files`, as `cluster` knows them."""
    pulse: Callable[..., DiskPulse] = DiskPulse
    """Watches for a disk that hangs."""
    memory_bytes: Callable[[], int] = of_this_machine
    keep_objects: Callable[[], None] = _nothing
    """What is in memory now stays for long: no cycle collector need look at it again."""


def system_seams() -> Seams:
    """Return the machine that this process runs on."""
    return Seams(SystemClock(), SystemRandom(), OsFiles(), bind, _boot_id)


def interposed_seams(files: OsFiles | None = None) -> Seams:
    """Return those of this process, with a disk and a clock that a test can spoil in use.

    `files`: the disk; None: as it is.
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
        # Not Linux, or not readable: which boot it is stays open.
        return b""
