"""Disks that get full at a word, and have room again at another: of one broker in a process.

Both are real, the kernel itself refuses the write:

    a small filesystem   ENOSPC. In a mount namespace whose only process holds it; everybody else
                         gets there by /proc, so that the broker is one as always. Not permitted
                         in every container: skipped there.
    a file size limit    EFBIG, for whatever file grows beyond it. Permitted everywhere.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.processes.broker_process import BrokerProcess

SIZE_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 4096


class Disk(ABC):
    """Where a broker's log directory is to lie."""

    directory: Path

    @abstractmethod
    def fill(self, broker: BrokerProcess) -> None:
        """From now on next to nothing more can be written."""

    @abstractmethod
    def make_room(self) -> None: ...

    def has_ended(self, broker: BrokerProcess, write: Callable[[], None]) -> bool:
        """Return whether the broker has ended; otherwise fill its disk, and write more to it."""
        assert broker.process is not None
        if broker.process.poll() is None:
            self.fill(broker)
            write()
        return broker.process.poll() is not None


class SmallFilesystem(Disk):
    """`entering`: the command that runs another program where the filesystem is mounted at
    `inner`. The program's paths then lead to it, without a link of /proc that is resolved to
    nothing."""

    def __init__(self, holder: int, at: Path) -> None:
        root = Path(f"/proc/{holder}/root{at}")
        self.inner = at
        self.directory = root / "data"
        self._ballast = root / "ballast"
        user = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
        self.entering = ("nsenter", f"--target={holder}", "--mount", *user)

    def fill(self, broker: BrokerProcess) -> None:
        self.fill_up()

    def fill_up(self) -> None:
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(_CHUNK_BYTES))
        assert shutil.disk_usage(self._ballast.parent).free < _CHUNK_BYTES

    def make_room(self) -> None:
        self._ballast.unlink()


class LimitedFiles(Disk):
    """No file of the broker gets longer than the longest segment now is; a start lifts that."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def fill(self, broker: BrokerProcess) -> None:
        assert broker.process is not None
        segments = (path.stat().st_size for path in self.directory.glob("*/*.log"))
        most = max(*segments, _CHUNK_BYTES)
        # The hard limit stays, for a limit that was lowered may not be raised at the next call.
        _, hard = resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(broker.process.pid, resource.RLIMIT_FSIZE, (most, hard))

    def make_room(self) -> None:
        pass


@contextlib.contextmanager
def small_filesystem(directory: Path) -> Iterator[SmallFilesystem]:
    """Skips the test where mounting is not allowed."""
    at = directory / "disk"
    at.mkdir()
    mount = f"mount -t tmpfs -o size={SIZE_BYTES} none '{at}' && echo there && exec sleep infinity"
    namespace = ("--mount",) if os.geteuid() == 0 else ("--user", "--map-root-user", "--mount")
    try:
        holder = subprocess.Popen(
            ["unshare", *namespace, "sh", "-c", mount],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    except OSError as error:
        pytest.skip(f"a small filesystem needs `unshare` (util-linux): {error}")
    try:
        assert holder.stdout is not None and holder.stderr is not None
        if holder.stdout.readline() != "there\n":
            pytest.skip(f"a small filesystem cannot be mounted here: {holder.stderr.read()}")
        yield SmallFilesystem(holder.pid, at)
    finally:
        holder.kill()
        holder.communicate()


@contextlib.contextmanager
def limited_files(directory: Path) -> Iterator[Disk]:
    yield LimitedFiles(directory / "limited")


DISKS = {"small filesystem": small_filesystem, "limited files": limited_files}
IN_EACH_RUN = ("small filesystem", pytest.param("limited files", marks=pytest.mark.soak))
"""The names for tests that take long; one disk refuses writes with ENOSPC, the other with EFBIG."""
