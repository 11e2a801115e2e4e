"""Tracks whether a log can still be used, which is not the case if it has failed or was abandoned.

After a failed write, the state in memory differs from the disk. In addition, a kernel that could
not write a page may drop the page and report success for the next write. A log therefore stays
failed until it is reopened and its files are read again. A log that was abandoned is never used
again, because it was deleted or moved or its directory has failed.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.errors import is_out_of_descriptors


class LogAbandoned(OSError):
    """The log is no longer used, because it was deleted or moved or its directory has failed.

    Another log with the same name may have replaced it during an `await`, so this does not
    necessarily indicate a disk error.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(errno.ESTALE, "the log is no longer in use", str(directory))


class LogHealth:
    """Tracks the failures of a log. Threads that wait for the disk may report failures, too."""

    __slots__ = ("is_abandoned", "is_failed")

    def __init__(self) -> None:
        self.is_failed = False
        """Whether a disk operation has failed. The state of the log is then unknown until it is
        reopened.
        """
        self.is_abandoned = False

    def check(self, directory: Path) -> None:
        """Raise LogAbandoned or another OSError if the log in `directory` can no longer be used."""
        if not self.is_failed:
            return
        if self.is_abandoned:
            raise LogAbandoned(directory)
        reason = "an earlier write failed; repair the disk and restart the broker"
        raise OSError(errno.EIO, reason, str(directory))

    def abandon(self) -> None:
        self.is_abandoned = True
        self.is_failed = True

    def on_error(self, error: OSError, *, is_resumable: bool = True) -> None:
        """Record that a disk operation has failed.

        If `is_resumable` is set, running out of file descriptors does not mark the log as failed,
        because the operation has not changed anything and the next attempt may succeed.
        """
        if not (is_resumable and is_out_of_descriptors(error)):
            self.is_failed = True

    @contextmanager
    def failing(self, *, is_resumable: bool = False) -> Iterator[None]:
        """Mark the log as failed if the enclosed block raises OSError; see `on_error`."""
        try:
            yield
        except OSError as error:
            self.on_error(error, is_resumable=is_resumable)
            raise
