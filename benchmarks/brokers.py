"""The brokers that are measured, each a process of its own: Barnabas, and a real Kafka 3.9.1."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from benchmarks.accounting import Cpu, cpu, resident_bytes
from tests.kit.foreign import require_java, require_kafka_jars
from tests.kit.processes.broker_process import broker_process, free_port
from tests.kit.processes.cluster_process import cluster_process
from tests.kit.processes.ready_brokers import wait_for_members

_START_SECONDS = 180.0
_READY = "started (kafka.server.KafkaServer)"
_JAVA_OPTIONS = (
    # What kafka-server-start.sh sets, collector included.
    *("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    "-Djava.awt.headless=true",
)
_ONE_GIGABYTE = ("-Xms1g", "-Xmx1g")
_600_MEGABYTES = ("-Xms600m", "-Xmx600m")
KAFKA_JVM = (*_JAVA_OPTIONS, *_600_MEGABYTES)
"""Of a broker in a cluster."""


class Broker(NamedTuple):
    """Whom a workload is run against."""

    name: str
    servers: str
    pid: int
    data_dirs: tuple[Path, ...] = ()
    """Where the logs are, if that is known."""
    replicas: int = 1
    """Of each topic."""
    peers: tuple[int, ...] = ()
    """The processes of the other brokers, in a cluster."""
    tls_servers: str = ""
    """Its listener with TLS, if it has one."""

    @property
    def pids(self) -> tuple[int, ...]:
        return (self.pid, *self.peers)

    def cpu(self) -> Cpu:
        """What all brokers have used."""
        used = [cpu(pid) for pid in self.pids]
        return Cpu(sum(each.user for each in used), sum(each.system for each in used))

    def resident_bytes(self) -> int:
        return sum(map(resident_bytes, self.pids))


@contextlib.contextmanager
def barnabas(directory: Path, *options: str) -> Iterator[Broker]:
    directory.mkdir(parents=True, exist_ok=True)
    with broker_process(directory, *options) as broker:
        assert broker.process is not None
        yield Broker("Barnabas", broker.bootstrap_servers, broker.process.pid, (broker.data_dir,))


@contextlib.contextmanager
def barnabas_cluster(directory: Path) -> Iterator[Broker]:
    """Three brokers of ours and a ZooKeeper, replication factor 3, min.insync.replicas 2."""
    directory.mkdir(parents=True, exist_ok=True)
    options = ("min.insync.replicas=2", "auto.create.topics.enable=false")
    with cluster_process(directory, 3, *options) as cluster:
        processes = [broker.process for broker in cluster.brokers.values()]
        pids = [process.pid for process in processes if process is not None]
        logs = tuple(broker.data_dir for broker in cluster.brokers.values())
        yield Broker("Barnabas", cluster.bootstrap_servers, pids[0], logs, 3, tuple(pids[1:]))


@contextlib.contextmanager
def kafka(
    directory: Path,
    tls: Mapping[str, object] | None = None,
    protocol: str = "SSL",
    settings: Mapping[str, object] = MappingProxyType({}),
) -> Iterator[Broker]:
    """A Kafka in ZooKeeper mode, the ZooKeeper beside it from the same jars; with the settings
    `tls` it has a second listener, of that protocol.

    Ends by pytest's skip exception where Java or Maven is missing, as the tests do.
    """
    port = free_port()
    second = f"{protocol}://127.0.0.1:{port}" if tls else ""
    given = {**settings, **(tls or {})}
    with _kafkas(directory, 1, _ONE_GIGABYTE, given, second) as (servers, pids):
        tls_servers = f"127.0.0.1:{port}" if tls else ""
        yield Broker("Kafka", servers, pids[0], tls_servers=tls_servers)


@contextlib.contextmanager
def kafka_cluster(
    directory: Path, count: int = 3, settings: Mapping[str, object] = MappingProxyType({})
) -> Iterator[Broker]:
    """Kafkas of 600 MB heap, as many as their replication factor; see `kafka`.

    min.insync.replicas is 2 unless the settings say otherwise.
    """
    with _kafkas(directory, count, _600_MEGABYTES, settings) as (servers, pids):
        yield Broker("Kafka", servers, pids[0], (), count, tuple(pids[1:]))


@contextlib.contextmanager
def _kafkas(
    directory: Path,
    count: int,
    heap: tuple[str, ...],
    given: Mapping[str, object] = MappingProxyType({}),
    second_listener: str = "",
) -> Iterator[tuple[str, list[int]]]:
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
    with contextlib.ExitStack() as stack:
        zookeeper = [*run, "-Xmx256m", _ZOOKEEPER, str(directory / "zoo.cfg")]
        stack.enter_context(_process(zookeeper, directory / "zk.log"))
        _wait_for_port(zookeeper_port)
        servers, processes = [], []
        for broker_id in range(count):
            port = free_port()
            settings: dict[str, object] = {
                "broker.id": broker_id,
                "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
                "log.dirs": directory / f"data-{broker_id}",
                "offsets.topic.replication.factor": count,
                "transaction.state.log.replication.factor": count,
                "transaction.state.log.min.isr": min(2, count),
                "min.insync.replicas": min(2, count),
                "auto.create.topics.enable": "false",
                **given,
            }
            if second_listener:
                settings["listeners"] = f"{settings['listeners']},{second_listener}"
            path = directory / f"server-{broker_id}.properties"
            path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            command = [*run, *_JAVA_OPTIONS, *heap, "kafka.Kafka", str(path)]
            log = directory / f"kafka-{broker_id}.log"
            processes.append((stack.enter_context(_process(command, log)), log))
            servers.append(f"127.0.0.1:{port}")
        for process, log in processes:
            _wait_for(process, log, _READY)
        wait_for_members(servers)
        yield ",".join(servers), [process.pid for process, _ in processes]


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
