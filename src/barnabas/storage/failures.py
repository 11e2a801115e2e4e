"""What an OSError says about a log: that its disk refuses, or that it is nobody's log any more.

Whoever holds a log across an `await` may find that it was deleted in the meantime, and that another
one of that name is in its place: then nothing is wrong with any disk.
"""

from __future__ import annotations

import errno
from pathlib import Path


class LogAbandoned(OSError):
    """The log was deleted, or its directory had failed before: it is used no longer."""

    def __init__(self, directory: Path) -> None:
        super().__init__(errno.ESTALE, "the log is no longer in use", str(directory))
