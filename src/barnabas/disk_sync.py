"""Forces the written bytes of a file, or the names in a directory, onto the disk."""

from __future__ import annotations

import errno
import fcntl
import os

_UNSUPPORTED = frozenset({errno.ENOTSUP, errno.EINVAL, errno.ENOTTY, errno.ENOTCONN})


def sync_descriptor(descriptor: int) -> None:
    """Make sure that the written data survives a power failure. Releases the GIL. Raises OSError.

    On macOS, fsync leaves the bytes in the cache of the drive. F_FULLFSYNC does not, so it is used
    instead, as in Java. Some network file systems do not support it; fsync is used there.
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
