"""A real ZooKeeper as a child process: what a cluster keeps its metadata in, and may lose."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypeVar

from kazoo.client import KazooClient  # type: ignore[import-untyped]

from tests.kit import foreign
from tests.kit.processes.broker_process import free_port

START_SECONDS = 120.0
STOP_SECONDS = 120.0
TICK_MS = 200
"""A session lives two ticks at least, and ends up to one late."""

S = TypeVar("S", bound="KeeperProcess")

_MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
_FAST_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx128m")


class KeeperProcess(ABC):
    """One server on one port and one directory, started as often as a test wants.

    The port is chosen once and kept, so that sessions find the server again after a restart.
    Everything it says is collected in `log` (a file), over all its lives. Sessions may be as short
    as two ticks of `tick_ms`, and as long as a minute.
    """

    def __init__(self, directory: Path, tick_ms: int, config: str, address: str) -> None:
        """`config`: more lines of its configuration file."""
        self.address = address
        self.directory = directory / "zookeeper"
        self.log = self.directory / "zookeeper.log"
        self.port = free_port()
        self.tick_ms = tick_ms
        self.process: subprocess.Popen[bytes] | None = None
        self._config = config

    @property
    def connect(self) -> str:
        """What `zookeeper.connect` is; a chroot may be put behind it."""
        return f"{self.address}:{self.port}"

    @abstractmethod
    def start(self) -> None:
        """Returns when it answers clients."""

    def stop(self) -> int:
        """SIGTERM; returns the exit code. It keeps its tree and its sessions."""
        return self._end(signal.SIGTERM)

    def kill(self) -> None:
        """`kill -9`. It keeps its tree and its sessions all the same."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """It answers no client, and no connection breaks, until `resume`."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def word(self, text: bytes) -> str:
        """What it answers to these bytes, until it closes the connection."""
        address = (self.address, self.port)
        with socket.create_connection(address, timeout=START_SECONDS) as connection:
            connection.sendall(text)
            answer = b""
            while part := connection.recv(4096):
                answer += part
        return answer.decode()

    def write_config(self) -> Path:
        """Writes its configuration file."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "zoo.cfg"
        config.write_text(
            f"tickTime={self.tick_ms}\nmaxSessionTimeout=60000\ndataDir={self.directory}\n"
            f"clientPortAddress={self.address}\nclientPort={self.port}\nmaxClientCnxns=0\n"
            f"{self._config}\n"
        )
        return config

    def _end(self, number: int) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(STOP_SECONDS)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.process = None
        return code


class ZooKeeperProcess(KeeperProcess):
    """Java's server."""

    def __init__(
        self,
        directory: Path,
        *,
        tick_ms: int = TICK_MS,
        address: str = "127.0.0.1",
        class_path: str = "",
        config: str = "",
        java_options: Sequence[str] = (),
    ) -> None:
        """`class_path`: of another server than the one installed; `config`: lines for its
        configuration file.

        Ends the test, with what to install, where there is no ZooKeeper."""
        config = f"admin.enableServer=false\npreAllocSize=64\n{config}"
        super().__init__(directory, tick_ms, config, address)
        self._java_options = java_options
        self._class_path = class_path or foreign.require_zookeeper()
        self._java = foreign.require_java()

    def start(self) -> None:
        """Returns when it answers clients."""
        config = self.write_config()
        command = [
            str(self._java),
            *_FAST_START,
            f"-Dzookeeper.log.dir={self.directory}",
            "-Dzookeeper.root.logger=INFO,CONSOLE",
            # Killed or not, the page cache is whole: no need to wait for the disk.
            "-Dzookeeper.forceSync=no",
            *self._java_options,  # of two values for one option, Java takes the later
            *("-cp", self._class_path, _MAIN, str(config)),
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        ends_at = time.monotonic() + START_SECONDS
        while not self._is_serving():
            assert self.process.poll() is None, self.log.read_text(errors="replace")
            assert time.monotonic() < ends_at, self.log.read_text(errors="replace")
            time.sleep(0.02)

    def _is_serving(self) -> bool:
        with contextlib.suppress(OSError):
            # One that comes while it starts may never be answered.
            with socket.create_connection((self.address, self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                answer = b""
                while part := connection.recv(4096):
                    answer += part
            return b"Mode: standalone" in answer
        return False


@contextlib.contextmanager
def running(server: S) -> Iterator[S]:
    """Starts it; it is killed at the end if it still runs then."""
    try:
        server.start()
        yield server
    finally:
        if server.process is not None:
            server.kill()


@contextlib.contextmanager
def kazoo_clients(addresses: Sequence[str], timeout_s: float) -> Iterator[list[KazooClient]]:
    """A client of each address, connected; their sessions end with the block."""
    clients = [KazooClient(each, timeout=timeout_s) for each in addresses]
    try:
        for each in clients:
            each.start(timeout=timeout_s)
        yield clients
    finally:
        for each in clients:
            each.stop()
            each.close()


def zookeeper_process(
    directory: Path, *, tick_ms: int = TICK_MS
) -> AbstractContextManager[ZooKeeperProcess]:
    """A running ZooKeeper with an empty tree."""
    return running(ZooKeeperProcess(directory, tick_ms=tick_ms))
