"""Forces a file's written bytes, or the names in a directory, onto the disk."""

from __future__ import annotations

import errno
import fcntl
import os

_UNSUPPORTED = frozenset({errno.ENOTSUP, errno.EINVAL, errno.ENOTTY, errno.ENOTCONN})


def sync_descriptor(descriptor: int) -> None:
    """Make the written data survive a power failure. Releases the GIL. Raises OSError.

    On macOS fsync leaves the bytes in the drive's own cache; F_FULLFSYNC does not, and Java uses it
    too. Some network file systems lack it; then fsync is used.
    """
    full_sync = getattr(fcntl, "F_FULLFSYNC", None)
    if full_sync is not None:
        try:
            fcntl.fcntl(descriptor, full_sync)
            return
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
    os.fsync(descriptor)
