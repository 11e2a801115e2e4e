"""Writes files that can be read only by their owner."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from barnabas.disk_sync import sync_descriptor

_OWNER_ONLY: Final = 0o600


def write_secret(path: Path, content: bytes) -> None:
    """Replace a file with one that only its owner can read.

    The file is replaced as a whole or not at all. Raises OSError.
    """
    try:
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as error:
        # Name the file that the caller knows instead of the temporary one.
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            # mkstemp sets the same mode, but the umask may change it.
            os.fchmod(file.fileno(), _OWNER_ONLY)
            file.write(content)
            file.flush()
            sync_descriptor(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
