"""How long partitions have no leader: a broker that leads 1,000 is killed, or stops in order.

    python -m benchmarks.failover [--partitions N] [--own-zookeeper]

Three processes, replication factor 3, min.insync.replicas 2, an idempotent producer with acks=all
that writes to the partitions in turn. "after the znode" is from the moment in which ZooKeeper drops
the registration to the first acknowledgement afterwards; the kill itself is noticed only when the
session ends (here after 2 s), which is ZooKeeper's share and not counted. librdkafka is the load,
and has pauses of its own before it tries a new leader; so one more producer, ours, writes one
record after the other and tries again every 50 ms. What it waits for is the cluster alone.

"with a past": each log had a record before a rolling restart, which flushed it, so that its epochs
are on disk already when the new leader adds one.

With --own-zookeeper, `barnabas zookeeper start` is in the place of Java's server.
"""

from __future__ import annotations

import itertools
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient  # type: ignore[import-untyped]

from barnabas.client import SyncAdmin, SyncProducer, TopicPartition
from barnabas.client.admin.partition_admin import PREFERRED
from barnabas.client.producer.batch import ProducerRecord
from benchmarks.figures import Figure, parser_of, show
from tests.kit.processes.cluster_process import ClusterProcess, started
from tests.kit.processes.own_zookeeper_process import OwnZooKeeperProcess
from tests.kit.processes.zookeeper_process import KeeperProcess, ZooKeeperProcess
from tests.kit.waiting import wait_until

PARTITIONS = 1_000
TOPIC = "led-by-one"
_PATIENCE_SECONDS = 60.0
_LOOK_EVERY_SECONDS = 0.05


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--own-zookeeper", action="store_true", help="not Java's")
    options = parser.parse_args()
    kind = OwnZooKeeperProcess if options.own_zookeeper else ZooKeeperProcess
    show("failover, three brokers", measure(options.partitions, kind), options.json)


def measure(
    partitions: int, keeper: Callable[[Path], KeeperProcess] = ZooKeeperProcess
) -> list[Figure]:
    """Killed, then stopped in order, each in a cluster of its own."""
    killed = _measure(partitions, 3, signal.SIGKILL, keeper)
    past = _measure(partitions, 3, signal.SIGKILL, keeper, has_past=True)
    controller = _measure(partitions, 1, signal.SIGKILL, keeper)
    stopped = _measure(partitions, 3, signal.SIGTERM, keeper)
    return [
        Figure("killed: first record after the znode", "s", killed.first_record, 1.0),
        Figure("killed: first record of librdkafka", "s", killed.first_of_load),
        Figure("killed: a record in every partition", "s", killed.every_partition),
        Figure("killed, with a past: first record after the znode", "s", past.first_record, 1.0),
        Figure("killed, with a past: a record in every partition", "s", past.every_partition),
        Figure("controller killed: first record after the znode", "s", controller.first_record),
        Figure("controller killed: first record of librdkafka", "s", controller.first_of_load),
        Figure("controller killed: a record in every partition", "s", controller.every_partition),
        Figure("stopped in order: no leader is left there", "s", stopped.moved, 3.0),
        Figure("stopped in order: longest wait for a record", "s", stopped.longest_wait),
    ]


class _Times(NamedTuple):
    """Seconds: the first three after the znode has gone, the fourth after the signal."""

    first_record: float
    first_of_load: float
    every_partition: float
    moved: float
    longest_wait: float


def _measure(
    partitions: int,
    leader: int,
    how: signal.Signals,
    keeper: Callable[[Path], KeeperProcess],
    *,
    has_past: bool = False,
) -> _Times:
    """Broker 1 is started first, so it is the controller as well."""
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-benchmark-") as directory,
        started(_cluster(Path(directory), keeper)) as cluster,
    ):
        _create(cluster, partitions, leader)
        if has_past:
            _restart_all(cluster, partitions)
        gone = _Gone(cluster, leader)
        load = _Load(cluster.bootstrap_servers, partitions)
        wait_until(load.is_everywhere, _PATIENCE_SECONDS)
        probe = _Probe(cluster.bootstrap_servers, partitions)
        wait_until(lambda: probe.acknowledged, _PATIENCE_SECONDS)
        process = cluster.brokers[leader].process
        assert process is not None
        admin = AdminClient({"bootstrap.servers": cluster.brokers[2].bootstrap_servers})
        began = time.perf_counter()
        process.send_signal(how)
        wait_until(lambda: _leads_nothing(admin, leader), _PATIENCE_SECONDS)
        moved = time.perf_counter() - began
        wait_until(lambda: gone.at > 0, _PATIENCE_SECONDS)
        wait_until(lambda: load.is_everywhere_since(gone.at), _PATIENCE_SECONDS)
        wait_until(lambda: probe.acknowledged[-1] > gone.at, _PATIENCE_SECONDS)
        ended = time.perf_counter()
        probe.stop()
        load.stop()
        gone.client.stop()
        after = sorted(load.first_since(gone.at))
        longest = load.longest(began, ended)
        first = next(at for at in probe.acknowledged if at > gone.at)
        return _Times(first - gone.at, after[0] - gone.at, after[-1] - gone.at, moved, longest)


def _cluster(directory: Path, keeper: Callable[[Path], KeeperProcess]) -> ClusterProcess:
    return ClusterProcess(directory, 3, "min.insync.replicas=2", zookeeper=keeper(directory))


def _create(cluster: ClusterProcess, partitions: int, leader: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    one, other = (broker_id for broker_id in cluster.brokers if broker_id != leader)
    orders = [leader, one, other], [leader, other, one]
    placed = [orders[number % 2] for number in range(partitions)]
    topic = NewTopic(TOPIC, partitions, replica_assignment=placed)
    admin.create_topics([topic])[TOPIC].result(_PATIENCE_SECONDS)


def _restart_all(cluster: ClusterProcess, partitions: int) -> None:
    """One after the other, with a record in each partition; the first replicas lead again."""
    with SyncProducer(cluster.bootstrap_servers) as producer:
        producer.send_many(
            ProducerRecord(TOPIC, b"past", partition=number) for number in range(partitions)
        )
        producer.flush()
    names = [TopicPartition(TOPIC, number) for number in range(partitions)]
    for broker in cluster.brokers.values():
        broker.stop()
        broker.start()
        with SyncAdmin(cluster.bootstrap_servers) as admin:
            wait_until(lambda: _are_in_sync(admin, len(cluster.brokers)), _PATIENCE_SECONDS)
    with SyncAdmin(cluster.bootstrap_servers) as admin:
        admin.elect_leaders(PREFERRED, names)


def _are_in_sync(admin: SyncAdmin, replicas: int) -> bool:
    time.sleep(_LOOK_EVERY_SECONDS)
    (topic,) = admin.describe_topics([TOPIC])
    return all(len(each.isr) == replicas for each in topic.partitions)


def _leads_nothing(admin: AdminClient, leader: int) -> bool:
    time.sleep(_LOOK_EVERY_SECONDS)  # an answer of a thousand partitions: it is not to be the load
    found = admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions.values()
    return all(each.leader not in (-1, leader) for each in found)


class _Gone:
    """When ZooKeeper has dropped a broker; 0.0 before."""

    def __init__(self, cluster: ClusterProcess, broker_id: int) -> None:
        self.at = 0.0
        self.client = KazooClient(cluster.zookeeper.connect)
        self.client.start()
        assert self.client.exists(f"/brokers/ids/{broker_id}", watch=self._changed)

    def _changed(self, _event: object) -> None:
        self.at = time.perf_counter()


class _Probe:
    """Writes one record after the other, to one partition after the other."""

    def __init__(self, servers: str, partitions: int) -> None:
        self.acknowledged: list[float] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(servers, partitions), daemon=True)
        self._thread.start()

    def _run(self, servers: str, partitions: int) -> None:
        with SyncProducer(servers, retry_backoff_ms=50) as producer:
            for number in itertools.count():
                if self._stopping.is_set():
                    return
                producer.send(TOPIC, b"probe", partition=number % partitions)
                producer.flush()
                self.acknowledged.append(time.perf_counter())

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


class _Load:
    """Writes to one partition after the other, and notes when each was acknowledged."""

    def __init__(self, servers: str, partitions: int) -> None:
        self._partitions = partitions
        self._acknowledged: list[list[float]] = [[] for _ in range(partitions)]
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 0,
                "retry.backoff.ms": 50,
                "topic.metadata.refresh.fast.interval.ms": 50,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            partition = number % self._partitions
            self._producer.produce(TOPIC, b"x" * 100, partition=partition, on_delivery=self._note)
            number += 1
            self._producer.poll(0)
            while len(self._producer) > self._partitions and not self._stopping.is_set():
                self._producer.poll(0.01)
            if number % 20 == 0:
                self._producer.poll(0.005)

    def _note(self, error: object, record: object) -> None:
        if error is None:
            self._acknowledged[record.partition()].append(time.perf_counter())  # type: ignore[attr-defined]

    def is_everywhere(self) -> bool:
        return all(self._acknowledged)

    def is_everywhere_since(self, instant: float) -> bool:
        return all(times and times[-1] > instant for times in self._acknowledged)

    def first_since(self, instant: float) -> list[float]:
        return [next(at for at in times if at > instant) for times in self._acknowledged]

    def longest(self, began: float, ended: float) -> float:
        """The longest time without an acknowledgement in any partition, around that span."""
        longest = 0.0
        for times in self._acknowledged:
            seen = [at for at in times if began - 1 < at < ended + 1]
            longest = max([longest, *(late - early for early, late in itertools.pairwise(seen))])
        return longest

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(10)


if __name__ == "__main__":
    main()
