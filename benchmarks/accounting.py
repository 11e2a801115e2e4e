"""What a process has used so far, as the kernel counts it."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_USER, _SYSTEM = 11, 12  # fields behind the command's name, which may hold blanks


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads, in steps of 10 ms."""
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat[stat.rindex(")") + 2 :].split()
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS_PER_SECOND


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_BYTES
