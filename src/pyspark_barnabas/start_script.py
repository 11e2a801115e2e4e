"""Writes a shell script that starts a program for Spark."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def provide_script(path: str, text: str) -> Path | None:
    """Write an executable script with this text and return its path, or None if no directory is
    writable.

    `path` is relative to Barnabas's directory. This directory is in the interpreter's environment,
    so that the script moves with the environment, or otherwise in the user's cache.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    for directory in (Path(sys.prefix) / "share", Path(cache)):
        script = directory / "barnabas" / path
        try:
            _write(script, text)
        except OSError:
            continue
        return script
    return None


def _write(path: Path, text: str) -> None:
    if path.is_file() and path.read_text() == text and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Write atomically, because another process may be about to start the script.
    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(name).chmod(0o755)
    Path(name).replace(path)
