"""Decides whether a log may be used: its disk may have failed, or it may have been abandoned.

After a failed write, memory and disk differ, and a kernel that failed to write a page may drop it
and report success for the next write. A log therefore stays failed until it has been reopened and
its files have been read. An abandoned log is never used again: it was deleted or moved, or its
directory has failed.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.errors import is_out_of_descriptors


class LogAbandoned(OSError):
    """The log is no longer in use: it was deleted or moved, or its directory failed.

    Another log of that name may have replaced it during an `await`, so the disk need not be at
    fault.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(errno.ESTALE, "the log is no longer in use", str(directory))


class LogHealth:
    """Tracks a log's failures, including those in threads that wait for the disk."""

    __slots__ = ("is_abandoned", "is_failed")

    def __init__(self) -> None:
        self.is_failed = False
        """Whether a disk operation failed. The log's state is then unknown until it is reopened."""
        self.is_abandoned = False

    def check(self, directory: Path) -> None:
        """Raise LogAbandoned or another OSError if the log in `directory` has failed."""
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
        """Note that a disk operation has failed.

        If `is_resumable`, a lack of descriptors does not fail the log: the operation changed
        nothing, and the next attempt may succeed.
        """
        if not (is_resumable and is_out_of_descriptors(error)):
            self.is_failed = True

    @contextmanager
    def failing(self, *, is_resumable: bool = False) -> Iterator[None]:
        """Mark the log as failed if the block raises an OSError; see `on_error`."""
        try:
            yield
        except OSError as error:
            self.on_error(error, is_resumable=is_resumable)
            raise
