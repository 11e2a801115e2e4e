"""Determines how much memory this process may use, considering the machine and the container limit,
if any.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_UNKNOWN_BYTES: Final = 2 << 30


def of_this_machine(limits: Iterable[Path] = _LIMITS) -> int:
    """Return the number of usable bytes, or a guess. `limits` are the files that contain the
    container limits.
    """
    try:
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):  # Windows has no sysconf
        found = []
    for path in limits:
        try:
            text = path.read_text().strip()
        except OSError:
            continue
        if text.isdigit():  # otherwise "max"
            found.append(int(text))
    return min((each for each in found if each > 0), default=_UNKNOWN_BYTES)
