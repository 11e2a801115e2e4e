"""Reads and writes `barnabas.pid` in a broker's first log directory, which `server stop` uses.

    4711                    process id
    8123456                 when the process started, in the kernel's ticks; -1 if unknown
    PLAINTEXT://:9092       the configured listeners

It is a plain file, because a real Kafka rejects unknown directories but ignores unknown files. A
killed broker leaves the file behind, and process ids are eventually reused, so it includes the
start time of the process. This module imports almost nothing, because `server start` imports it.
"""

from __future__ import annotations

import os
from pathlib import Path

from barnabas.named_tuple import NamedTuple

FILE_NAME = "barnabas.pid"
PROC = Path("/proc")  # exists only on Linux
UNKNOWN_START = -1

_MAX_BYTES = 4096


class PidFile(NamedTuple):
    pid: int
    began_ticks: int
    listeners: str

    @property
    def is_alive(self) -> bool:
        """Return whether the process that wrote the file is running."""
        began_ticks = process_began_ticks(self.pid)
        return began_ticks is not None and began_ticks == self.began_ticks


def read_pid_file(directory: Path) -> PidFile | None:
    """Return the content of the file in this directory, or None if it is missing or malformed."""
    try:
        with (directory / FILE_NAME).open("rb") as file:
            lines = file.read(_MAX_BYTES).decode("utf-8", "replace").splitlines()
        # Treat a truncated or malformed file as missing.
        return PidFile(int(lines[0]), int(lines[1]), lines[2])
    except (OSError, ValueError, IndexError):
        return None


def claim(directory: Path, listeners: str, process: int | None = None) -> bool:
    """Write the file for this process, or for `process`. Returns False if it belongs to a live
    process or cannot be written. Neither case prevents a start, because the broker itself checks
    whether it can use the directory.
    """
    found = read_pid_file(directory)
    # If two brokers want the directory, the directory's lock decides which one gets it, not this
    # file.
    if found is not None and found.is_alive:
        return False
    pid = os.getpid() if process is None else process
    began_ticks = process_began_ticks(pid)
    text = f"{pid}\n{UNKNOWN_START if began_ticks is None else began_ticks}\n{listeners}\n"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (directory / FILE_NAME).write_text(text)
    except OSError:
        return False
    return True


def release(directory: Path) -> None:
    """Remove this process's file, ignoring disk errors."""
    found = read_pid_file(directory)
    # Another process may have claimed the directory in the meantime.
    if found is not None and found.pid == os.getpid():
        try:
            (directory / FILE_NAME).unlink(missing_ok=True)
        except OSError:
            return  # the next start or stop detects that it is stale


def process_began_ticks(pid: int, proc: Path = PROC) -> int | None:
    """Return when a process started, None if it does not exist, or UNKNOWN_START if this is
    unknown.
    """
    try:
        with (proc / str(pid) / "stat").open("rb") as stat:
            # Fields 3 and 22 are counted from the end of the name in parentheses, because the name
            # may contain anything.
            fields = stat.read().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    except (FileNotFoundError, ProcessLookupError):
        # If there is a /proc, the process is gone. Otherwise, its start time is unknown.
        if (proc / "self" / "stat").exists():
            return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        return UNKNOWN_START
    return UNKNOWN_START
