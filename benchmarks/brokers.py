"""The brokers that are measured, each a process of its own: Barnabas, and a real Kafka 3.9.1."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.foreign import require_java, require_kafka_jars
from tests.integration.broker_process import broker_process, free_port

_START_SECONDS = 60.0
_READY = "started (kafka.server.KafkaServer)"
_JAVA_OPTIONS = (
    # What kafka-server-start.sh sets, heap and collector included.
    *("-server", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    "-Djava.awt.headless=true",
)


class Broker(NamedTuple):
    """Whom a workload is run against."""

    name: str
    servers: str
    pid: int
    data_dir: Path | None = None
    """Where its logs are, if that is known."""


@contextlib.contextmanager
def barnabas(directory: Path, *options: str) -> Iterator[Broker]:
    directory.mkdir(parents=True, exist_ok=True)
    with broker_process(directory, *options) as broker:
        assert broker.process is not None
        yield Broker("Barnabas", broker.bootstrap_servers, broker.process.pid, broker.data_dir)


@contextlib.contextmanager
def kafka(directory: Path) -> Iterator[Broker]:
    """A Kafka in ZooKeeper mode, the ZooKeeper beside it from the same jars.

    Ends by pytest's skip exception where Java or Maven is missing, as the tests do.
    """
    java, jars = require_java(), require_kafka_jars()
    directory.mkdir(parents=True, exist_ok=True)
    zookeeper_port = free_port()
    (directory / "log4j.properties").write_text(_LOG4J)
    (directory / "zoo.cfg").write_text(
        f"tickTime=2000\ndataDir={directory / 'zookeeper'}\nclientPort={zookeeper_port}\n"
        "clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n"
    )
    run = [
        str(java),
        "-cp",
        f"{jars}/*",
        f"-Dlog4j.configuration=file:{directory}/log4j.properties",
    ]
    with _process([*run, "-Xmx256m", _ZOOKEEPER, str(directory / "zoo.cfg")], directory / "zk.log"):
        _wait_for_port(zookeeper_port)
        port = free_port()  # only now: it would have been the same one before
        settings = {
            "broker.id": 0,
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
            "log.dirs": directory / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "auto.create.topics.enable": "false",
        }
        path = directory / "server.properties"
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = [*run, *_JAVA_OPTIONS, "kafka.Kafka", str(path)]
        with _process(command, directory / "kafka.log") as process:
            _wait_for(process, directory / "kafka.log", _READY)
            yield Broker("Kafka", f"127.0.0.1:{port}", process.pid)


_ZOOKEEPER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

_LOG4J = """log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaServer=INFO
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
"""


@contextlib.contextmanager
def _process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Killed at the end: its directory goes with it, so nothing needs a clean stop."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=log.parent, env=dict(os.environ)
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_for(process: subprocess.Popen[bytes], log: Path, text: str) -> None:
    ends_at = time.monotonic() + _START_SECONDS
    while text not in (said := log.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > ends_at:
            raise TimeoutError(f"Kafka did not start:\n{said[-2000:]}")
        time.sleep(0.1)


def _wait_for_port(port: int) -> None:
    ends_at = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            if time.monotonic() > ends_at:
                raise
            time.sleep(0.1)
