"""A disk that hangs is noticed (ST-10); one that fails, or is idle, is not taken for one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.runtime.disk_pulse import FILE_NAME, DiskPulse
from barnabas.storage.files import OsFiles
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import wait_until


class HangingFiles(OsFiles):
    """A machine one of whose disks may hang, or refuse."""

    __slots__ = ("fails", "goes_on", "hanging", "refused")

    def __init__(self) -> None:
        self.hanging: Path | None = None
        self.goes_on = threading.Event()
        self.fails = False
        self.refused = 0

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        if self.fails:
            self.refused += 1
            raise OSError(5, "Input/output error", str(path))
        if self.hanging is not None and path.is_relative_to(self.hanging):
            self.goes_on.wait()
        super().write(path, data)


class Watched:
    """The pulse of two directories."""

    def __init__(self, directory: Path, timeout_ms: int) -> None:
        self.files = HangingFiles()
        self.directories = [directory / "one", directory / "two"]
        for each in self.directories:
            each.mkdir()
        self.hung: list[Path] = []
        self.has_hung = threading.Event()
        self.pulse = DiskPulse(self.files, lambda: self.directories, timeout_ms, self._on_hang, 10)

    def _on_hang(self, path: Path) -> None:
        self.hung.append(path)
        self.has_hung.set()

    def writes(self) -> int:
        path = self.directories[1] / FILE_NAME
        return int(path.read_bytes() or b"0") if path.exists() else 0


@pytest.fixture
def watched(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """Patient, unless the test is one of a hang."""
    hangs = "number" in request.fixturenames
    watched = Watched(tmp_path, 200 if hangs else 1000 * int(PATIENCE_S))
    yield watched
    watched.pulse.stop()
    watched.files.goes_on.set()


@pytest.mark.parametrize("number", [0, 1])
def test_st_10_a_write_that_does_not_end_is_noticed_once(watched: Watched, number: int) -> None:
    watched.pulse.start()
    wait_until(lambda: watched.writes() > 0)
    watched.files.hanging = watched.directories[number]
    assert watched.has_hung.wait(PATIENCE_S)
    assert watched.hung == [watched.directories[number]]


def test_st_10_writes_that_end_are_no_hang(watched: Watched) -> None:
    """Of two directories, over several times what a write may take."""
    watched.pulse.start()
    wait_until(lambda: watched.writes() > 20)
    assert not watched.hung


def test_st_10_an_error_is_no_hang(watched: Watched) -> None:
    """The disk's errors are met, and handled, where records are written."""
    watched.files.fails = True
    watched.pulse.start()
    wait_until(lambda: watched.files.refused > 20)
    assert not watched.hung


def test_nothing_is_written_after_a_stop(watched: Watched) -> None:
    watched.pulse.start()
    wait_until(lambda: watched.writes() > 0)
    watched.pulse.stop()
    wait_until(lambda: not any("pulse" in each.name for each in threading.enumerate()))
    assert not watched.hung
