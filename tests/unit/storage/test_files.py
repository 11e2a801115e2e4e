"""The machine's disk behind the seam."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.storage.files import Entry, OsFile, OsFiles


@pytest.fixture
def files() -> OsFiles:
    return OsFiles()


def test_writes_go_where_they_are_told(files: OsFiles, tmp_path: Path) -> None:
    file = files.open(tmp_path / "x", create=True)
    file.write(0, b"hello")
    file.write(3, bytearray(b"p me"))
    file.write(10, memoryview(b"!"))
    assert file.pread(100, 0) == b"help me\x00\x00\x00!"
    assert file.size() == 11
    file.truncate(4)
    assert file.pread(100, 1) == b"elp"
    file.release()


def test_a_short_write_is_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A signal, or a nearly full disk, may cut one short; the kernel says by how much."""
    whole_write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole_write(fd, data[:3], at))
    file = OsFiles().open(tmp_path / "x", create=True)
    file.write(2, b"0123456789")
    assert file.pread(100, 0) == b"\x00\x000123456789"
    file.release()


def test_a_file_closes_with_its_last_holder(files: OsFiles, tmp_path: Path) -> None:
    file = files.open(tmp_path / "x", create=True)
    descriptor = file.fileno()
    file.acquire()
    file.release()
    os.fstat(descriptor)
    file.release()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    with pytest.raises(AssertionError, match="more often"):
        file.release()
    with pytest.raises(AssertionError, match="closed"):
        file.acquire()


def test_a_forgotten_file_is_closed(tmp_path: Path) -> None:
    file: OsFile | None = OsFile(os.open(tmp_path / "x", os.O_CREAT | os.O_RDWR))
    assert file is not None
    descriptor = file.fileno()
    file = None
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_directories_are_listed_by_name(files: OsFiles, tmp_path: Path) -> None:
    files.make_directory(tmp_path / "b" / "inner")
    files.write(tmp_path / "c", b"123", sync=True)
    files.write(tmp_path / "a", b"")
    assert files.list(tmp_path) == [
        Entry("a", False, 0),
        Entry("b", True, 0),
        Entry("c", False, 3),
    ]
    files.replace(tmp_path / "c", tmp_path / "a")
    assert files.read(tmp_path / "a") == b"123"
    files.write(tmp_path / "b" / "inner" / "x", b"1")
    files.remove_directory(tmp_path / "b")
    files.remove(tmp_path / "missing")
    files.sync(tmp_path)
    files.sync(tmp_path / "a")
    assert [entry.name for entry in files.list(tmp_path)] == ["a"]
    with pytest.raises(FileNotFoundError):
        files.read(tmp_path / "b")


def test_a_lock_holds_within_the_process_and_outlives_failed_attempts(
    files: OsFiles, tmp_path: Path
) -> None:
    held = files.lock(tmp_path / ".lock")
    for _ in range(3):
        with pytest.raises(BlockingIOError):
            files.lock(tmp_path / ".lock")
    assert _lock_elsewhere(tmp_path / ".lock") == "held"
    held.release()
    assert _lock_elsewhere(tmp_path / ".lock") == "free"
    files.lock(tmp_path / ".lock").release()


def _lock_elsewhere(path: Path) -> str:
    """What another process finds that locks as a JVM does: with a POSIX record lock."""
    code = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "try:\n"
        "    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "    print('free')\n"
        "except OSError:\n"
        "    print('held')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def test_a_lock_respects_another_process(files: OsFiles, tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.touch()
    code = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
        "print('locked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(BlockingIOError):
            files.lock(path)
        other.stdin.close()
        other.wait(10)
    files.lock(path).release()
