"""Simulates a full, failing or slow disk, and a wall clock that is wrong or stopped.

These faults replace a broker's seams, so the broker behaves as on a machine with such a disk or
clock.
"""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.broker.runtime.interposed_clock import InterposedClock
from barnabas.broker.runtime.interposed_files import InterposedFiles
from barnabas.broker.seams import Seams
from barnabas.errors import ConfigError
from barnabas.testing.faults.arguments import MOST_DELAY_MS, nearest

_DISK_ERRORS: Final = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EMFILE", "ENFILE")
_LONGEST_JUMP_MS: Final = 100 * 365 * 86_400_000


class DiskFault(NamedTuple):
    """An error or a delay that affects writes and syncs."""

    error: str | None = None
    delay_ms: int = 0

    def arguments(self) -> dict[str, str | int | None]:
        """Return the arguments of `faults.disk` that create this fault."""
        return {"error": self.error, "delay_ms": self.delay_ms}

    def before(self, path: Path) -> None:
        """Delay a write to `path`, or make it fail, before any data is written."""
        if self.delay_ms:
            time.sleep(self.delay_ms / 1000)  # blocks the writing thread, like a slow disk
        if self.error is not None:
            code = getattr(errno, self.error)
            raise OSError(code, os.strerror(code), str(path))


class ClockFault(NamedTuple):
    """Describes how the wall clock is changed: shifted by an offset, or stopped."""

    offset_ms: int = 0
    frozen: bool = False

    def arguments(self) -> dict[str, int | bool]:
        """Return the arguments of `faults.clock` that create this fault."""
        return {"offset_ms": self.offset_ms, "frozen": self.frozen}


def disk_fault(*, full: bool, error: str | None, delay_ms: int) -> DiskFault:
    """Build a fault from these arguments. Raises ConfigError."""
    if full and error is not None:
        raise ConfigError(f"full=True and error={error!r}: set only one of them")
    if error is not None and error not in _DISK_ERRORS:
        raise ConfigError(
            f"error={error!r}: disks do not fail this way{nearest(error, _DISK_ERRORS)}; they fail "
            f"with {', '.join(_DISK_ERRORS)}"
        )
    if isinstance(delay_ms, bool) or not isinstance(delay_ms, int):
        raise ConfigError(f"delay_ms={delay_ms!r}: it must be of type int")
    if not 0 <= delay_ms <= MOST_DELAY_MS:
        raise ConfigError(f"delay_ms={delay_ms}: 0 to {MOST_DELAY_MS} ms")
    if not full and error is None and not delay_ms:
        raise ConfigError("the disk fault does nothing: set full=True, error= or delay_ms=")
    return DiskFault("ENOSPC" if full else error, delay_ms)


def clock_fault(*, offset_ms: int, frozen: bool) -> ClockFault:
    """Build a fault from these arguments. Raises ConfigError."""
    if isinstance(offset_ms, bool) or not isinstance(offset_ms, int):
        raise ConfigError(f"offset_ms={offset_ms!r}: it must be of type int")
    if abs(offset_ms) > _LONGEST_JUMP_MS:
        raise ConfigError(f"offset_ms={offset_ms}: at most a hundred years in either direction")
    if not offset_ms and not frozen:
        raise ConfigError("the clock fault does nothing: set offset_ms= or frozen=True")
    return ClockFault(offset_ms, frozen)


class MachineFaults:
    """The disk and clock of one broker. Faults can be injected into them at run time."""

    def __init__(self, seams: Seams) -> None:
        files, clock = seams.files, seams.clock
        assert isinstance(files, InterposedFiles) and isinstance(clock, InterposedClock)
        self._files = files
        self._clock = clock

    def spoil_disk(self, fault: DiskFault | None) -> None:
        """Replace the disk's fault; None repairs the disk."""
        # A broker queries the free space of a full disk, and the result must be consistent with the
        # errors.
        self._files.is_full = fault is not None and fault.error in ("ENOSPC", "EDQUOT")
        self._files.before = None if fault is None else fault.before

    def spoil_clock(self, fault: ClockFault | None) -> None:
        """Replace the clock's fault; None restores the machine's time."""
        clock = self._clock
        clock.stands_at_ms = None
        clock.offset_ms = 0 if fault is None else fault.offset_ms
        # Apply the offset before reading the time, because the clock stops at the time that it
        # shows.
        if fault is not None and fault.frozen:
            clock.stands_at_ms = clock.wall_ms()
