"""Creates private directories for secrets, and rejects directories to which other users may write.

The contents of such a directory are trusted at the next start, so a user who may write to it could
choose the passwords. The directory must therefore belong to root or to the user running this
process, no other user may have write access, and no other user may be able to replace it with
another directory. A user who has read access can see the names of the files but not the secrets,
because the files are readable only by their owner.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from barnabas.errors import ConfigError

_log = logging.getLogger(__name__)

_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_READ: Final = stat.S_IRGRP | stat.S_IROTH
_ROOT: Final = 0


def own_directory(path: Path) -> None:
    """Create the directory with mode 0700 if it does not exist. Raises ConfigError or OSError."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_directory(path)


def check_directory(path: Path) -> None:
    """Raise ConfigError or OSError if another user could choose the secrets in the directory."""
    if not hasattr(os, "geteuid"):  # on Windows, nobody else has access
        return
    _check_owner(path, path.lstat())  # the owner of a link has chosen its target
    whole = path.resolve()
    found = whole.stat()
    _check_owner(path, found)
    if found.st_mode & _OTHERS_WRITE:
        raise ConfigError(
            f"{path}: other users can write to this directory and replace the secrets in it; if "
            f"you trust its contents, run chmod go-w {path}"
        )
    # A user with write access to a parent directory can rename this directory and put another in
    # its place.
    for parent in whole.parents:
        mode = parent.stat().st_mode
        # If the sticky bit is set, as on /tmp, an entry can be renamed or removed only by its
        # owner.
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise ConfigError(
                f"{path}: all users can write to {parent} and replace this directory; run chmod "
                f"o-w {parent}, or use another directory"
            )


def check_secrets(paths: Iterable[Path]) -> None:
    """Raise ConfigError for files that others may write; warn about files that others may read."""
    if not hasattr(os, "geteuid"):
        return
    for path in paths:
        try:
            found = path.stat()
        except FileNotFoundError:
            continue
        _check_owner(path, found)
        if found.st_mode & _OTHERS_WRITE:
            raise ConfigError(
                f"{path}: other users can write to this file; if you trust it, run chmod 600 {path}"
            )
        # This is only a warning, because a secret that has been exposed cannot be hidden again, and
        # the group may be meant to have access.
        if found.st_mode & _OTHERS_READ:
            _log.warning("%s is readable by other users; run chmod 600 %s", path, path)


def _check_owner(path: Path, found: os.stat_result) -> None:
    own = os.geteuid()
    if found.st_uid not in (own, _ROOT):
        raise ConfigError(
            f"{path} belongs to the user with id {found.st_uid}, not to the current "
            f"user ({own}), so another user controls the secrets in it: use another directory, or "
            "chown it if you trust its contents"
        )
