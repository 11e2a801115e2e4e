"""`barnabas cluster` as it is typed: its processes, killed and brought back."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from barnabas.cli.server.pid_file import read_pid_file
from tests.kit import foreign
from tests.kit.clients import confluent_client
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.command_line import COMMAND, with_settings
from tests.kit.secured.suite import IS_SECURED, copy_files

START_SECONDS = 180


STOP_SECONDS = 120


class LocalCluster:
    """What somebody has who types the commands."""

    def __init__(self, directory: Path, *, javas_zookeeper: bool = False) -> None:
        """`javas_zookeeper`: with Java's, as if the cluster had first been started with it."""
        self.directory = directory / "cluster"
        if javas_zookeeper:
            foreign.require_zookeeper()
            foreign.require_java()
            (self.directory / "zookeeper").mkdir(mode=0o700, parents=True)
            (self.directory / "zookeeper" / "version-2").mkdir()
        self.errors = directory / "errors"
        self.port = free_port() + 5000
        self.process: subprocess.Popen[str] | None = None
        self.servers = ""

    def start(self, *options: str) -> list[str]:
        """Returns what it says until it is ready; in the secured suites, not how one logs in."""
        if IS_SECURED:
            options = ("--secure", *options)
            copy_files(self.directory / "secure")
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                [COMMAND, "cluster", "start", "--dir", str(self.directory), *options,
                 "--port", str(self.port)],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        said = ""
        while "barnabas cluster ready on " not in said or not said.endswith("\n"):
            readable, _, _ = select.select([self.process.stdout], [], [], START_SECONDS)
            more = os.read(self.process.stdout.fileno(), 4096) if readable else b""
            assert more, self.errors.read_text()
            said += more.decode()
        lines = said.splitlines()
        self.servers = lines[-1].removeprefix("barnabas cluster ready on ")
        if IS_SECURED:
            lines = [line for line in lines if not line.startswith("admin connects with ")]
        return lines

    def stop(self, number: int = signal.SIGTERM) -> int:
        assert self.process is not None
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        assert self.process is not None and self.process.stdout is not None
        code = self.process.wait(STOP_SECONDS)
        self.process.stdout.close()
        self.process = None
        return code

    def run(self, line: str, code: int = 0) -> str:
        """The output and the errors of a command for this cluster."""
        done = subprocess.run(
            [COMMAND, *with_settings(line.split())],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            env={**os.environ, "BARNABAS_BOOTSTRAP_SERVER": self.servers},
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def cluster(self, line: str, code: int = 0) -> str:
        return self.run(f"cluster {line} --dir {self.directory}", code)

    def pid(self, name: str) -> int:
        recorded = read_pid_file(self.directory / name)
        assert recorded is not None
        return recorded.pid

    def kill(self, name: str) -> None:
        os.kill(self.pid(name), signal.SIGKILL)

    def kill_all(self) -> None:
        """Whatever still runs at the end of a test."""
        if self.process is not None:
            self.process.kill()
            self.ended()
        for place in self.directory.glob("*/"):
            recorded = read_pid_file(place)
            if recorded is not None and recorded.is_alive:
                os.kill(recorded.pid, signal.SIGKILL)

    def isr_sizes(self, topic: str) -> set[int]:
        described = confluent_client.describe_topic(self.servers, topic)
        return {len(partition.isr) for partition in described}


@contextlib.contextmanager
def local_cluster(directory: Path, *, javas_zookeeper: bool = False) -> Iterator[LocalCluster]:
    cluster = LocalCluster(directory, javas_zookeeper=javas_zookeeper)
    try:
        yield cluster
    finally:
        cluster.kill_all()
