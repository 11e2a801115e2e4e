"""The disk that a test may spoil: each write is announced, on files that are open already, too."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.broker.runtime.interposed_files import InterposedFiles
from barnabas.storage.files import OsFiles


def refuse(path: Path) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", str(path))


def test_tk_4_every_way_to_write_can_be_refused(tmp_path: Path) -> None:
    files = InterposedFiles(OsFiles())
    path = tmp_path / "log"
    file = files.open(path, create=True)
    file.write(0, b"kept")
    files.before = refuse
    ways: list[Callable[[], object]] = [
        lambda: file.write(0, b"lost"),
        lambda: file.writev(0, [b"lost"]),
        lambda: files.sync(path),
        lambda: files.write(path, b"lost"),
        lambda: files.make_directory(tmp_path / "new"),
        lambda: files.open(tmp_path / "new", create=True),
    ]
    for way in ways:
        with pytest.raises(OSError, match="No space left"):
            way()
    assert file.pread(10, 0) == b"kept"
    files.before = None
    file.writev(4, [b", and ", b"more"])
    file.release()
    assert files.read(path) == b"kept, and more"
    assert [entry.name for entry in files.list(tmp_path)] == ["log"]


def test_tk_4_a_full_disk_has_no_space(tmp_path: Path) -> None:
    files = InterposedFiles(OsFiles())
    before = files.space(tmp_path)
    files.is_full = True
    assert files.space(tmp_path).usable_bytes == 0
    assert files.space(tmp_path).total_bytes == before.total_bytes
