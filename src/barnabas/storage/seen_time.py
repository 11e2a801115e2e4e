"""Stores the latest wall time that could be trusted in each log directory.

    .barnabas_clock     milliseconds since the epoch, as decimal digits

At startup, a broker compares the clock with the stored time, because the clock may be wrong after a
power failure. The file is replaced and synced from time to time. If none of the files can be read,
the broker trusts the clock.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from barnabas.storage.checkpoint import replace_file
from barnabas.storage.files import Files

_log = logging.getLogger(__name__)

FILE_NAME = ".barnabas_clock"
_MOST_DIGITS = 15  # the year 33658


def read_seen_ms(files: Files, directories: Iterable[Path]) -> int | None:
    """Return the latest time (ms) stored in these directories, or None. The directories need not
    exist.
    """
    found = []
    for each in directories:
        try:
            text = files.read(each / FILE_NAME)
        except OSError:
            continue  # a new or a failed directory, which opening its logs will show
        if text.isdigit() and len(text) <= _MOST_DIGITS:
            found.append(int(text))
        else:
            _log.warning("%s is damaged; ignoring it", each / FILE_NAME)
    return max(found, default=None)


def write_seen_ms(files: Files, directories: Iterable[Path], wall_ms: int) -> None:
    """Replace the time stored in each directory. Raises OSError."""
    for each in directories:
        replace_file(files, each / FILE_NAME, b"%d" % wall_ms)
