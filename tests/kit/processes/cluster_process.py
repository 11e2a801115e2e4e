"""Brokers as processes that share a ZooKeeper: a cluster whose members may be killed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.kit.processes.broker_process import BrokerProcess
from tests.kit.processes.zookeeper_process import KeeperProcess, ZooKeeperProcess
from tests.kit.raw_client import NO_TIDYING
from tests.kit.waiting import wait_until

SESSION_MS = 2_000


class ClusterProcess:
    """`size` brokers with the ids 1, 2, ... and a ZooKeeper; each on a port that it keeps."""

    def __init__(
        self, directory: Path, size: int, *options: str, zookeeper: KeeperProcess | None = None
    ) -> None:
        """`zookeeper`: a server that is not Java's, and that does not run yet."""
        self.zookeeper = zookeeper or ZooKeeperProcess(directory)
        self.brokers: dict[int, BrokerProcess] = {}
        for broker_id in range(1, size + 1):
            own = directory / f"broker-{broker_id}"
            own.mkdir(parents=True)
            self.brokers[broker_id] = BrokerProcess(
                own,
                f"broker.id={broker_id}",
                f"zookeeper.connect={self.zookeeper.connect}",
                f"zookeeper.session.timeout.ms={SESSION_MS}",
                f"offsets.topic.replication.factor={min(3, size)}",
                f"transaction.state.log.replication.factor={min(3, size)}",
                f"transaction.state.log.min.isr={min(2, size)}",
                "offsets.topic.num.partitions=6",
                "transaction.state.log.num.partitions=6",
                "group.initial.rebalance.delay.ms=0",
                "controlled.shutdown.retry.backoff.ms=200",
                *(f"{name}={value}" for name, value in NO_TIDYING.items()),
                *options,
            )

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(broker.bootstrap_servers for broker in self.brokers.values())

    def start(self) -> None:
        self.zookeeper.start()
        for broker in self.brokers.values():
            broker.start()

    def stop(self) -> None:
        for broker in self.brokers.values():
            if broker.process is not None:
                broker.stop()
        self.zookeeper.stop()

    def kill_all(self) -> None:
        """Whatever still runs at the end of a test."""
        for broker in self.brokers.values():
            if broker.process is not None:
                broker.kill()
        if self.zookeeper.process is not None:
            self.zookeeper.kill()


@contextlib.contextmanager
def cluster_process(directory: Path, size: int = 3, *options: str) -> Iterator[ClusterProcess]:
    """A cluster that runs; what is left of it at the end is killed."""
    with started(ClusterProcess(directory, size, *options)) as cluster:
        yield cluster


@contextlib.contextmanager
def started(cluster: ClusterProcess) -> Iterator[ClusterProcess]:
    """As `cluster_process`, of one that is made already."""
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill_all()


def data_files(cluster: ClusterProcess, topic: str, partition: int) -> dict[int, bytes]:
    """What each broker's segments of a partition hold, by broker."""
    found = {}
    for broker_id, broker in cluster.brokers.items():
        directory = broker.data_dir / f"{topic}-{partition}"
        if directory.is_dir():
            found[broker_id] = b"".join(
                path.read_bytes() for path in sorted(directory.glob("*.log"))
            )
    return found


def wait_for_equal_files(cluster: ClusterProcess, topic: str, partition: int) -> None:
    """Once quiet, all replicas of a partition are the same to the byte."""

    def equal() -> bool:
        files = data_files(cluster, topic, partition)
        return len(set(files.values())) == 1

    wait_until(equal)
