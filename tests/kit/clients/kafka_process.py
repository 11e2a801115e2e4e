"""Brokers of a real Kafka as child processes, in the place of ours: same ports, same files."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.kit import foreign
from tests.kit.clients.java_client import FRUGAL
from tests.kit.clients.kafka_tools import mapped_classes
from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.cluster_process import ClusterProcess
from tests.kit.processes.ready_brokers import wait_for_members
from tests.kit.secured.kafka_users import make_users
from tests.kit.secured.suite import IS_SECURED, kafka_settings

START_SECONDS = 180.0
STOP_SECONDS = 180.0

_READY = "started (kafka.server.KafkaServer)"
_LOG4J = """log4j.rootLogger=WARN, out
log4j.logger.kafka.server.KafkaServer=INFO
log4j.logger.kafka.log.LogManager=INFO
# Requests that its authorizer denies.
log4j.logger.kafka.authorizer.logger=INFO
# It complains of each partition whose broker is yet to start.
log4j.logger.state.change.logger=OFF
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
"""


class KafkaProcess:
    """The same broker by Kafka's program; what it says in this life is in a log of its own."""

    def __init__(
        self, ours: BrokerProcess, jars: Path | None = None, jvm: Sequence[str] = FRUGAL
    ) -> None:
        """Takes the port, the directory and the settings of one that does not run.

        `jars`: the directory of another version's, instead of Kafka 3.9's. `jvm`: its options.
        """
        self._directory = ours.data_dir.parent
        self._java, self._jars = foreign.require_java(), jars or foreign.require_kafka_jars()
        self.log = self._directory / "kafka.log"
        if IS_SECURED:
            make_users(ours.options)
        settings = [
            *kafka_settings(ours.port),
            f"log.dirs={ours.data_dir}",
            *ours.options,
            # A JVM that starts on a busy machine is often silent for longer than our brokers' two
            # seconds, and Kafka ends if its session expires meanwhile.
            "zookeeper.session.timeout.ms=10000",
            "zookeeper.connection.timeout.ms=60000",
        ]
        (self._directory / "server.properties").write_text("\n".join(settings) + "\n")
        (self._directory / "log4j.properties").write_text(_LOG4J)
        command = [
            *(str(self._java), *jvm, *([] if jars else mapped_classes())),
            *("-cp", f"{self._jars}/*"),
            f"-Dlog4j.configuration=file:{self._directory}/log4j.properties",
            *("kafka.Kafka", str(self._directory / "server.properties")),
        ]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def wait_until_ready(self) -> None:
        wait_until_said(_READY, self.log, self.process)

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def wait_until_said(text: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait for a text in the log of a process, which must not end before."""
    ends_at = time.monotonic() + START_SECONDS
    while text not in (said := log.read_text(errors="replace")):
        assert process.poll() is None, said
        assert time.monotonic() < ends_at, said
        time.sleep(0.1)


class KafkaCluster:
    """Kafka's brokers in the place of a cluster's, on its ZooKeeper."""

    def __init__(self, cluster: ClusterProcess) -> None:
        self._brokers = cluster.brokers
        self.running: dict[int, KafkaProcess] = {}

    def start(self) -> None:
        for broker_id, ours in self._brokers.items():
            self.running[broker_id] = KafkaProcess(ours)
        for broker in self.running.values():
            broker.wait_until_ready()
        wait_for_members([f"127.0.0.1:{each.port}" for each in self._brokers.values()])

    def stop(self) -> None:
        """One after the other, as they hand over what they lead."""
        for broker in self.running.values():
            broker.stop()
        self.running.clear()

    def kill_all(self) -> None:
        """Whatever still runs at the end of a test."""
        for broker in self.running.values():
            if broker.process.poll() is None:
                broker.kill()


@contextlib.contextmanager
def kafka_broker(directory: Path) -> Iterator[str]:
    """One broker of Kafka's alone, by its address; what is left of it at the end is killed."""
    cluster = ClusterProcess(directory, 1)
    kafka = KafkaCluster(cluster)
    try:
        cluster.zookeeper.start()
        kafka.start()
        yield cluster.bootstrap_servers
    finally:
        kafka.kill_all()
        cluster.kill_all()
