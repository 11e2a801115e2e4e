"""UX-5: the command lines of five texts about Kafka 2.3 run as they stand, in their order.

A reader has the scripts and the files of `barnabas install-scripts`, edits two of the files, and
types the lines into a shell.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.sync.producer import SyncAdmin
from barnabas.coordinator.state_partition import partition_of
from barnabas.types import TopicPartition
from tests.kit import foreign
from tests.kit.processes.broker_process import free_port
from tests.kit.processes.command_line import COMMAND

pytestmark = [pytest.mark.foreign, pytest.mark.slow]

LINES = tomllib.loads(Path(__file__).with_name("textbook_lines.toml").read_text())["line"]
DEBIANS_ZOOKEEPER = Path("/usr/share/java/zookeeper.jar")
TIMEOUT_S = 180


class Reader:
    """A directory as a Kafka distribution has it, and a shell in its `bin`."""

    def __init__(self, directory: Path) -> None:
        self.bin = directory / "bin"
        self.data = directory / "data" / "broker"
        self.zookeeper = f"127.0.0.1:{free_port()}"
        self.broker = f"localhost:{free_port()}"
        subprocess.run([COMMAND, "install-scripts", str(self.bin)], check=True, timeout=TIMEOUT_S)
        self._edit("zookeeper", clientPort=self.zookeeper.rpartition(":")[2])
        self._edit(
            "server",
            **{
                "zookeeper.connect": self.zookeeper,
                "broker.id": "0",
                "listeners": f"PLAINTEXT://{self.broker}",
                "advertised.listeners": f"PLAINTEXT://{self.broker}",
            },
        )

    def _edit(self, name: str, **values: str) -> None:
        """Uncomment the settings if need be, and change them."""
        path = self.bin.parent / "config" / f"{name}.properties"
        text = path.read_text()
        for key, value in values.items():
            text, count = re.subn(rf"^#?{re.escape(key)}=.*$", f"{key}={value}", text, flags=re.M)
            assert count == 1, key
        path.write_text(text)

    def _shell(self, typed: str) -> subprocess.Popen[bytes]:
        line = re.sub(r"\b(HOST|localhost):2181", self.zookeeper, typed)
        line = re.sub(r"\b(HOST|localhost):9092", self.broker, line)
        return subprocess.Popen(
            ["bash", "-c", f"exec {line.replace('DIR', str(self.data))}"],
            cwd=self.bin,
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "ZOOCFGDIR": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )

    def type(self, line: dict[str, Any]) -> str:
        """What the line prints; it must succeed."""
        process = self._shell(line["typed"])
        limit = threading.Timer(TIMEOUT_S, process.kill)  # which ends a wait for a line
        limit.start()
        seen = b""
        try:
            if count := line.get("lines"):
                assert process.stdout is not None
                seen = b"".join(process.stdout.readline() for _ in range(count))
                process.send_signal(signal.SIGINT)
            output, errors = process.communicate(line.get("input", "").encode(), TIMEOUT_S)
        finally:
            limit.cancel()
            process.kill()
            process.wait()
        assert process.returncode == 0, (line["typed"], seen, output, errors)
        return (seen + output).decode()

    def commit_in_partition(self, number: int) -> None:
        """By a group whose offsets are in this partition of `__consumer_offsets`."""
        names = (f"group-{each}" for each in range(10_000))
        group = next(name for name in names if partition_of(name, 50) == number)
        with SyncAdmin(self.broker) as admin:
            admin.alter_group_offsets(group, {TopicPartition("test", 0): 1})


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    foreign.require_java()
    if not DEBIANS_ZOOKEEPER.exists():
        foreign.missing("no ZooKeeper of Debian's", "apt-get install zookeeper")
    reader = Reader(tmp_path)
    yield reader
    for script in ("kafka-server-stop.sh ../config/server.properties", "zkServer.sh stop"):
        subprocess.run(
            ["bash", "-c", f"./{script}"], cwd=reader.bin, capture_output=True, timeout=TIMEOUT_S
        )


def test_ux_5_the_lines_of_the_texts_run_as_they_stand(reader: Reader) -> None:
    for line in LINES:
        if "--partition 35" in line["typed"]:
            reader.commit_in_partition(35)
        printed = reader.type(line)
        assert re.fullmatch(line["prints"], printed), (line["typed"], printed)
    directories = {path.name for path in reader.data.iterdir() if path.is_dir()}
    assert {"test-0", "three-0", "three-1", "three-2"} <= directories
