"""What only Linux has is switched off: what macOS does instead works as well."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from barnabas.broker.runtime.descriptors import allow_many, of_this_process
from barnabas.broker.seams import system_seams
from barnabas.cli.server.pid_file import UNKNOWN_START, process_began_ticks
from barnabas.cli.server.processes import find_servers
from barnabas.storage.files import OsFiles
from barnabas_collector import log_file


@pytest.fixture
def without_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS before 11, and without RWF_NOWAIT on all of them."""
    for name in ("preadv", "pwritev", "RWF_NOWAIT"):
        monkeypatch.delattr(os, name, raising=False)


@pytest.mark.usefixtures("without_vectors")
def test_buffers_are_written_in_one_piece(tmp_path: Path) -> None:
    file = OsFiles().open(tmp_path / "log", create=True)
    file.writev(0, [b"ab", b"", b"cde"] * 1_000)
    file.writev(5, [b"fg"])
    assert file.pread(20, 0) == b"abcdefgcdeabcdeabcde"
    assert file.size() == 5_000
    file.release()


@pytest.mark.usefixtures("without_vectors")
def test_what_is_cached_is_unknown_and_warming_ends(tmp_path: Path) -> None:
    file = OsFiles().open(tmp_path / "log", create=True)
    file.write(0, b"x" * 300_000)
    assert file.is_cached(0, 300_000)
    file.warm(0, 300_000)
    file.warm(200_000, 1_000_000)  # beyond the end
    file.release()


@pytest.mark.skipif(not hasattr(fcntl, "F_OFD_SETLK"), reason="it is not there anyway")
def test_locks_per_open_file_are_taken_on_linux_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS has the name, and another layout of the structure."""

    def refused(*_: object) -> None:
        raise AssertionError("a structure of Linux's layout")

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "fcntl", refused)
    files = OsFiles()
    held = files.lock(tmp_path / ".lock")
    with pytest.raises(BlockingIOError):
        files.lock(tmp_path / ".lock")
    held.release()
    files.lock(tmp_path / ".lock").release()


def test_descriptors_are_counted_by_dev_fd(tmp_path: Path) -> None:
    known = of_this_process()
    assert abs(of_this_process(tmp_path / "missing").left - known.left) <= 3


def test_a_limit_that_is_refused_is_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS calls its limit unlimited, and refuses more than it has."""
    asked = []

    def set_limit(_: int, limits: tuple[int, int]) -> None:
        asked.append(limits)
        if limits[0] > 10_240:
            raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", set_limit)
    allow_many()
    assert asked == [(1_000_000, resource.RLIM_INFINITY), (10_240, resource.RLIM_INFINITY)]


def test_the_boot_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: OsFiles, path: Path) -> bytes:
        raise FileNotFoundError(path)

    monkeypatch.setattr(OsFiles, "read", missing)
    assert system_seams().boot_id() == b""


def test_a_process_without_proc_is_alive_or_not(tmp_path: Path) -> None:
    assert process_began_ticks(os.getpid(), tmp_path) == UNKNOWN_START
    assert process_began_ticks(2**22 + 1, tmp_path) is None  # beyond Linux's largest


def test_servers_are_found_by_ps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = (
        "    1   0 /sbin/launchd\n"
        " 4711 501 /opt/bin/python3.13 /opt/bin/barnabas server start /etc/server.properties\n"
        " 4712 501 grep barnabas server start\n"
        f"{os.getpid()} 501 python -m barnabas.cli.main server start\n"
    )

    def ps(words: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[str]:
        assert words[0] == "ps"
        return subprocess.CompletedProcess(words, 0, listed, "")

    monkeypatch.setattr(subprocess, "run", ps)
    found = [(server.pid, server.user_id) for server in find_servers(tmp_path)]
    assert found == [(4711, 501), (4712, 501)]


def test_without_leases_a_writer_is_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log").write_bytes(b"line\n")
    monkeypatch.setattr(log_file, "fcntl", SimpleNamespace())
    log = log_file.LogFile(tmp_path / "log")
    assert not log.has_no_writer()
    log.close()


def test_macos_forces_the_cache_of_the_drive_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a file system that cannot gets an fsync; a disk that fails is not taken for one."""
    called: list[str] = []
    refusal: list[OSError] = []

    def full_sync(_: int, command: int) -> int:
        called.append(f"fcntl {command}")
        if refusal:
            raise refusal.pop()
        return 0

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full_sync)
    monkeypatch.setattr(os, "fsync", lambda _: called.append("fsync"))
    path = tmp_path / "log"
    path.write_bytes(b"x")
    OsFiles().sync(path)
    assert called == ["fcntl 51"]
    refusal.append(OSError(errno.ENOTSUP, "not supported"))
    OsFiles().sync(path)
    assert called == ["fcntl 51", "fcntl 51", "fsync"]
    refusal.append(OSError(errno.EIO, "input/output error"))
    with pytest.raises(OSError, match="input/output"):
        OsFiles().sync(path)
    assert called[3:] == ["fcntl 51"]
