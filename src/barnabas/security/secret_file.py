"""Writes files that only their owner can read."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from barnabas.disk_sync import sync_descriptor

_OWNER_ONLY: Final = 0o600


def write_secret(path: Path, content: bytes) -> None:
    """Replace a file with one that only its owner can read, either completely or not at all. Raises
    OSError.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            # mkstemp also sets this mode, but subject to the umask.
            os.fchmod(file.fileno(), _OWNER_ONLY)
            file.write(content)
            file.flush()
            sync_descriptor(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink()
        raise
