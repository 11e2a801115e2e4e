"""Why a log that has failed, or is no longer used, refuses everything."""

from __future__ import annotations

import errno
from pathlib import Path


class LogAbandoned(OSError):
    """The log is no longer used: it was deleted or moved, or its directory had failed before.

    During an `await` another log of that name may have replaced it: the disk need not be at fault.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(errno.ESTALE, "the log is no longer in use", str(directory))


def refusal(directory: Path, *, is_abandoned: bool) -> OSError:
    """Return the error that each use of a failed log raises."""
    if is_abandoned:
        return LogAbandoned(directory)
    reason = "an earlier write failed; repair the disk and restart the broker"
    return OSError(errno.EIO, reason, str(directory))
