"""The machine's disk behind the seam."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from barnabas.storage.files import Entry, OsFile, OsFiles
from tests.kit import foreign


@pytest.fixture
def files() -> OsFiles:
    return OsFiles()


def test_writes_go_to_their_positions(files: OsFiles, tmp_path: Path) -> None:
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


@pytest.fixture(params=["per open file", "per process"])
def kind_of_lock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux's kind of lock, and the one of all others."""
    if request.param == "per process":
        monkeypatch.delattr(fcntl, "F_OFD_SETLK", raising=False)


@pytest.mark.usefixtures("kind_of_lock")
def test_a_lock_holds_within_the_process_and_outlives_failed_attempts(
    files: OsFiles, tmp_path: Path
) -> None:
    held = files.lock(tmp_path / ".lock")
    for _ in range(3):
        with pytest.raises(BlockingIOError):
            files.lock(tmp_path / ".lock")
    assert _lock_elsewhere(tmp_path / ".lock") == "held"
    _spoil(files, tmp_path)
    assert _lock_elsewhere(tmp_path / ".lock") == "held"
    held.release()
    assert _lock_elsewhere(tmp_path / ".lock") == "free"
    files.lock(tmp_path / ".lock").release()


def _spoil(files: OsFiles, directory: Path) -> None:
    """What a broker does beside: other files come and go."""
    files.write(directory / "x", b"1", sync=True)
    files.open(directory / "x").release()


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


@pytest.mark.usefixtures("kind_of_lock")
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
        other.wait(120)
    files.lock(path).release()


_JAVA = """
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

public class TryLock {
    public static void main(String[] arguments) throws Exception {
        Path path = Path.of(arguments[0]);
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
            System.out.println(channel.tryLock() == null ? "held" : "locked");
            System.in.read();
        }
    }
}
"""


@pytest.mark.slow
@pytest.mark.foreign
@pytest.mark.usefixtures("kind_of_lock")
def test_a_jvm_and_we_respect_each_others_locks(files: OsFiles, tmp_path: Path) -> None:
    """Kafka takes `.lock` by `FileChannel.tryLock`: neither may run beside the other."""
    java = foreign.require_java()
    path = tmp_path / ".lock"
    (tmp_path / "TryLock.java").write_text(_JAVA)

    def jvm() -> subprocess.Popen[str]:
        command = [java, tmp_path / "TryLock.java", path]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    held = files.lock(path)
    with jvm() as other:
        assert other.stdout is not None
        assert other.stdout.readline() in ("held\n", ""), "the JVM ignored our lock"
        other.communicate("\n", timeout=180)
        if other.returncode:
            foreign.missing("no compiler in this Java", "apt-get install default-jdk-headless")
    held.release()
    with jvm() as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(BlockingIOError):
            files.lock(path)
        other.communicate("\n", timeout=180)
    files.lock(path).release()


def test_buffers_are_written_one_behind_the_other(files: OsFiles, tmp_path: Path) -> None:
    """Also more than one call of the kernel takes (1,024)."""
    file = files.open(tmp_path / "x", create=True)
    parts = [bytes([i % 251]) * (i % 5) for i in range(3000)]
    file.writev(7, parts)
    assert file.pread(10**6, 7) == b"".join(parts)
    file.release()


@pytest.mark.parametrize("at_once", [1, 5, 1000])
def test_a_short_vectored_write_is_finished(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, at_once: int
) -> None:
    whole_write = os.pwrite
    monkeypatch.setattr(
        os, "pwritev", lambda fd, parts, at: whole_write(fd, b"".join(parts)[:at_once], at)
    )
    file = OsFiles().open(tmp_path / "x", create=True)
    file.writev(2, [b"0123", b"", bytearray(b"45"), memoryview(b"6789")])
    assert file.pread(100, 0) == b"\x00\x000123456789"
    file.release()


def test_cached_bytes_are_known_and_others_warmed(files: OsFiles, tmp_path: Path) -> None:
    file = files.open(tmp_path / "x", create=True)
    file.write(0, os.urandom(1 << 20))
    assert file.is_cached(0, 1 << 20)
    assert file.is_cached(5000, 1)
    assert file.is_cached(1 << 20, 1000)  # behind the end nothing is waited for
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 1 << 20, os.POSIX_FADV_DONTNEED)
    if file.is_cached(0, 1 << 20):
        pytest.skip("this file system does not drop its pages")
    file.warm(0, 1 << 20)
    assert file.is_cached(0, 1 << 20)
    file.warm(1 << 20, 1 << 20)
    file.release()


def test_a_volume_says_how_much_room_it_has(files: OsFiles, tmp_path: Path) -> None:
    total, usable = files.space(tmp_path)
    assert total >= usable > 0
    files.write(tmp_path / "x", b"")
    os.utime(tmp_path / "x", ns=(0, 1_700_000_000_123_999_999))
    assert files.modified_ms(tmp_path / "x") == 1_700_000_000_123


def test_a_directory_can_be_listed_while_a_thread_renames_in_it(
    files: OsFiles, tmp_path: Path
) -> None:
    """As checkpoints are: written beside the old one and renamed over it."""
    stopping = threading.Event()

    def rename() -> None:
        while not stopping.is_set():
            (tmp_path / "checkpoint.tmp").write_bytes(b"")
            (tmp_path / "checkpoint.tmp").rename(tmp_path / "checkpoint")

    thread = threading.Thread(target=rename)
    thread.start()
    try:
        for _ in range(3000):
            assert {entry.name for entry in files.list(tmp_path)} <= {
                "checkpoint",
                "checkpoint.tmp",
            }
    finally:
        stopping.set()
        thread.join()
