"""What a process has used so far, as the kernel counts it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_USER, _SYSTEM = 11, 12  # fields behind the command's name, which may hold blanks


class Cpu(NamedTuple):
    """Seconds of all threads, in steps of 10 ms."""

    user: float
    system: float

    @property
    def total(self) -> float:
        return self.user + self.system

    def since(self, before: Cpu) -> Cpu:
        return Cpu(self.user - before.user, self.system - before.system)


def cpu(pid: int) -> Cpu:
    """What the process has used.

    The sum is exact; where the kernel counts by sampling, as in many virtual machines, some of what
    a page fault costs is taken for the user's.
    """
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat[stat.rindex(")") + 2 :].split()
    return Cpu(int(fields[_USER]) / _TICKS_PER_SECOND, int(fields[_SYSTEM]) / _TICKS_PER_SECOND)


def cpu_seconds(pid: int) -> float:
    """User and system time together."""
    return cpu(pid).total


def scheduled_seconds(pid: int) -> float:
    """What its threads have used so far, to the nanosecond, without those that have ended."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
