"""`barnabas zookeeper start` as a child process, in the place of a real ZooKeeper."""

from __future__ import annotations

import contextlib
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.kit.processes.broker_process import COMMAND, START_SECONDS, STOP_SECONDS, free_port
from tests.kit.processes.zookeeper_process import TICK_MS


class OwnZooKeeperProcess:
    """One server on one port and one directory, started as often as a test wants; it has the
    methods of `ZooKeeperProcess`. Its log is in `log`, over all its lives.
    """

    def __init__(self, directory: Path, *, tick_ms: int = TICK_MS, config: str = "") -> None:
        """`config`: more lines of its configuration file."""
        self.directory = directory / "zookeeper"
        self.log = self.directory / "zookeeper.log"
        self.port = free_port()
        self.tick_ms = tick_ms
        self._config = config
        self.process: subprocess.Popen[str] | None = None

    @property
    def connect(self) -> str:
        """What `zookeeper.connect` is; a chroot may be put behind it."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Returns when it has printed that it is ready."""
        command = self._command()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline() if readable else ""
        assert line == f"zookeeper ready on {self.connect}\n", (line, self.log.read_text())

    def refuse(self) -> str:
        """Starts it where it must not start: exit code 1, its standard error."""
        done = subprocess.run(
            self._command(), capture_output=True, text=True, timeout=START_SECONDS
        )
        assert (done.returncode, done.stdout) == (1, ""), done
        return done.stderr

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

    def _command(self) -> list[str]:
        """Writes the configuration file first."""
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "zoo.cfg"
        config.write_text(
            f"tickTime={self.tick_ms}\nmaxSessionTimeout=60000\ndataDir={self.directory}\n"
            f"clientPortAddress=127.0.0.1\nclientPort={self.port}\nmaxClientCnxns=0\n{self._config}"
        )
        return [str(COMMAND), "zookeeper", "start", str(config)]

    def _end(self, number: int) -> int:
        assert self.process is not None and self.process.stdout is not None
        self.process.send_signal(number)
        code = self.process.wait(STOP_SECONDS)
        self.process.stdout.close()
        self.process = None
        return code


@contextlib.contextmanager
def own_zookeeper(directory: Path, *, tick_ms: int = TICK_MS) -> Iterator[OwnZooKeeperProcess]:
    """A running server with an empty tree; killed at the end if it still runs then."""
    server = OwnZooKeeperProcess(directory, tick_ms=tick_ms)
    try:
        server.start()
        yield server
    finally:
        if server.process is not None:
            server.kill()
