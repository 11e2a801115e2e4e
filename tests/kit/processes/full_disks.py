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
from collections.abc import Iterator
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


class SmallFilesystem(Disk):
    def __init__(self, root: Path) -> None:
        self.directory = root / "data"
        self._ballast = root / "ballast"

    def fill(self, broker: BrokerProcess) -> None:
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
def small_filesystem(directory: Path) -> Iterator[Disk]:
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
        yield SmallFilesystem(Path(f"/proc/{holder.pid}/root{at}"))
    finally:
        holder.kill()
        holder.communicate()


@contextlib.contextmanager
def limited_files(directory: Path) -> Iterator[Disk]:
    yield LimitedFiles(directory / "limited")


DISKS = {"small filesystem": small_filesystem, "limited files": limited_files}
