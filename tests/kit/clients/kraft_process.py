"""A broker of a real Kafka with KRaft, which is its own controller, as a child process."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from barnabas.types import uuid_text
from tests.kit import foreign
from tests.kit.clients.java_client import FRUGAL
from tests.kit.clients.kafka_process import wait_until_said
from tests.kit.processes.broker_process import free_port

START_SECONDS = 180.0
STOP_SECONDS = 180.0

_READY = "Kafka Server started"
_LOG4J = """log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaRaftServer=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
"""


class KraftProcess:
    """One node with both roles, on one port; it may be stopped and started again."""

    def __init__(self, directory: Path, *options: str, jvm: Sequence[str] = FRUGAL) -> None:
        """Formats the directory, too."""
        self._jvm = jvm
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self.port, controller = free_port(), free_port()
        self.bootstrap_servers = f"127.0.0.1:{self.port}"
        self.data_dir, self.log = directory / "data", directory / "kafka.log"
        self._properties = directory / "server.properties"
        settings = (
            "process.roles=broker,controller",
            "node.id=1",
            f"controller.quorum.voters=1@127.0.0.1:{controller}",
            f"listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            f"log.dirs={self.data_dir}",
            "offsets.topic.replication.factor=1",
            "offsets.topic.num.partitions=1",
            "transaction.state.log.replication.factor=1",
            "transaction.state.log.num.partitions=1",
            "transaction.state.log.min.isr=1",
            "group.initial.rebalance.delay.ms=0",
            *options,
        )
        self._properties.write_text("\n".join(settings) + "\n")
        (directory / "log4j.properties").write_text(_LOG4J)
        words = ("format", "--ignore-formatted", "--cluster-id", uuid_text(_ID.to_bytes(16)))
        self._run("kafka.tools.StorageTool", *words, "--config", str(self._properties))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log.open("wb") as log:
            command = self._command("kafka.Kafka", str(self._properties))
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until_said(_READY, self.log, self.process)

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> None:
        assert self.process is not None
        self.process.terminate()
        self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _run(self, *words: str) -> None:
        done = subprocess.run(
            self._command(*words), capture_output=True, text=True, timeout=START_SECONDS
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _command(self, *words: str) -> list[str]:
        java, jars = foreign.require_java(), foreign.require_kafka_jars()
        log4j = f"-Dlog4j.configuration=file:{self._directory}/log4j.properties"
        return [str(java), *self._jvm, "-cp", f"{jars}/*", log4j, *words]


_ID = 0x6B726166746B726166746B726166746B


@contextlib.contextmanager
def kraft_process(
    directory: Path, *options: str, jvm: Sequence[str] = FRUGAL
) -> Iterator[KraftProcess]:
    """A running node; killed at the end if it still runs then."""
    kraft = KraftProcess(directory, *options, jvm=jvm)
    try:
        kraft.start()
        yield kraft
    finally:
        kraft.kill()
