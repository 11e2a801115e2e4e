"""`barnabas zookeeper start` as a child process, in the place of a real ZooKeeper."""

from __future__ import annotations

import select
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path

from tests.kit.processes.broker_process import COMMAND, START_SECONDS
from tests.kit.processes.zookeeper_process import TICK_MS, KeeperProcess, running


class OwnZooKeeperProcess(KeeperProcess):
    """Our server."""

    def __init__(self, directory: Path, *, tick_ms: int = TICK_MS, config: str = "") -> None:
        """`config`: more lines of its configuration file."""
        super().__init__(directory, tick_ms, config, "127.0.0.1")

    def start(self) -> None:
        """Returns when it has printed that it is ready."""
        command = self._command()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
        line = self.process.stdout.readline().decode() if readable else ""
        assert line == f"zookeeper ready on {self.connect}\n", (line, self.log.read_text())

    def refuse(self) -> str:
        """Starts it where it must not start: exit code 1, its standard error."""
        done = subprocess.run(
            self._command(), capture_output=True, text=True, timeout=START_SECONDS
        )
        assert (done.returncode, done.stdout) == (1, ""), done
        return done.stderr

    def _command(self) -> list[str]:
        """Writes the configuration file first."""
        return [str(COMMAND), "zookeeper", "start", str(self.write_config())]


def own_zookeeper(
    directory: Path, *, tick_ms: int = TICK_MS
) -> AbstractContextManager[OwnZooKeeperProcess]:
    """Our running server with an empty tree."""
    return running(OwnZooKeeperProcess(directory, tick_ms=tick_ms))
