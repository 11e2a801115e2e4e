"""The size of a log, as DescribeLogDirs tells it."""

from __future__ import annotations

from typing import NamedTuple


class LogSize(NamedTuple):
    """A log in a log directory."""

    size_bytes: int
    offset_lag: int
    """Of a future replica: how many offsets it is behind the current one."""
    is_future: bool
