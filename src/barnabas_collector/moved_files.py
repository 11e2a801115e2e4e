"""Known files that may have been moved to a name that is not one of their log's rotated files.

Their directory is the place to look: programs compress and copy logs under names of their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from barnabas.errors import ConfigError
from barnabas_collector.file_progress import FileProgress
from barnabas_collector.fingerprint import Fingerprint
from barnabas_collector.known_files import KnownFiles
from barnabas_collector.log_file import LogFile
from barnabas_collector.recognition import Found


def alike_files(log: Path, found: Iterable[Found], files: KnownFiles) -> list[FileProgress]:
    """The known files of other logs of this directory of which a found one may be a copy: its
    text begins alike, and is compressed or has times."""
    names: dict[str, FileProgress] = {}
    for file in found:
        if file.beginning and (file.size_bytes is None or _is_timed(file)):
            for known in files.alike(log.parent, file.beginning):
                if known.path != str(log):
                    names[known.file_id] = known
    return list(names.values())


def is_there(known: FileProgress) -> bool:
    """Whether the file is still in its directory, and was not truncated."""
    try:
        file = LogFile(_path(known))
    except (OSError, ConfigError):
        return False
    try:
        return is_in(known, file)
    finally:
        file.close()


def is_in(known: FileProgress, file: LogFile | None) -> bool:
    """Whether an open file is the known one, and was not truncated."""
    if file is None or file.inode != known.inode or not known.begins(file.beginning()):
        return False
    if file.is_compressed:
        return True
    return file.size_bytes() >= known.position and file.ends(known.extent)


def _path(known: FileProgress) -> Path:
    """Return its device and inode; raises OSError if it has none."""
    path = Path(known.path)
    if path.exists() and path.stat().st_ino == known.inode:
        return path
    with os.scandir(path.parent) as entries:
        for entry in entries:
            if entry.inode() == known.inode:
                return path.with_name(entry.name)
    raise FileNotFoundError(known.path)


def _is_timed(file: Found) -> bool:
    return Fingerprint(len(file.beginning), "").is_timed(file.beginning)
