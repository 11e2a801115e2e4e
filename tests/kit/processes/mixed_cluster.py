"""A cluster whose brokers are partly Kafka's and partly ours, on one ZooKeeper."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from barnabas.client import SyncAdmin
from barnabas.client.admin.admin import TopicDescription
from barnabas.client.admin.partition_admin import PREFERRED
from barnabas.cluster import layout
from barnabas.cluster.loading import load_brokers
from barnabas.cluster.store import Delete
from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.cluster.zookeeper_settings import Settings
from barnabas.coordinator.state_partition import partition_of
from barnabas.errors import BarnabasError, UnknownTopicOrPartition
from tests.kit import foreign
from tests.kit.clients.java_client import FRUGAL
from tests.kit.clients.kafka_process import KafkaProcess
from tests.kit.processes.cluster_load import controller_of
from tests.kit.processes.cluster_process import ClusterProcess
from tests.kit.processes.ready_brokers import wait_for_members
from tests.kit.waiting import wait_until

Kind = Literal["kafka", "ours"]
KINDS: tuple[Kind, ...] = ("kafka", "ours")
PATIENCE_S = 120.0
OPTIONS = (
    "min.insync.replicas=2",
    "replica.lag.time.max.ms=2000",
    "auto.create.topics.enable=false",
    "auto.leader.rebalance.enable=false",
    "zookeeper.session.timeout.ms=6000",
)


class MixedCluster:
    """Brokers that are started as the one kind or the other, each on its own files."""

    def __init__(
        self,
        directory: Path,
        kinds: Mapping[int, Kind],
        *options: str,
        versions: Mapping[int, str] = {},
        jvm: Sequence[str] = FRUGAL,
    ) -> None:
        """`versions`: of Kafka, by broker; 3.9 by default. `jvm`: the options of their JVMs."""
        self.ours = ClusterProcess(directory, len(kinds), *options)
        self.kinds = dict(kinds)
        self._jars = {key: foreign.require_broker_jars(each) for key, each in versions.items()}
        self._jvm = jvm
        self.kafkas: dict[int, KafkaProcess] = {}

    @property
    def bootstrap_servers(self) -> str:
        return self.ours.bootstrap_servers

    def start(self) -> None:
        """Kafka's brokers start at the same time, as each of them takes some seconds."""
        self.ours.zookeeper.start()
        for broker_id in self.of_kind("kafka"):
            self._start_kafka(broker_id)
        for broker_id in self.of_kind("ours"):
            self.ours.brokers[broker_id].start()
        for kafka in self.kafkas.values():
            kafka.wait_until_ready()
        self.wait_for_members()

    def start_one(self, broker_id: int, kind: Kind) -> None:
        self.kinds[broker_id] = kind
        if kind == "ours":
            self.ours.brokers[broker_id].start()
        else:
            # A Kafka that was killed ends at once if its last session is still alive.
            wait_until(lambda: broker_id not in self.registered(), PATIENCE_S)
            self._start_kafka(broker_id).wait_until_ready()
        self.wait_for_members()

    def _start_kafka(self, broker_id: int) -> KafkaProcess:
        kafka = KafkaProcess(self.ours.brokers[broker_id], self._jars.get(broker_id), self._jvm)
        self.kafkas[broker_id] = kafka
        return kafka

    def stop_one(self, broker_id: int) -> None:
        if self.kinds[broker_id] == "ours":
            assert self.ours.brokers[broker_id].stop() == 0
        else:
            self.kafkas.pop(broker_id).stop()

    def kill_one(self, broker_id: int) -> None:
        if self.kinds[broker_id] == "ours":
            self.ours.brokers[broker_id].kill()
        else:
            self.kafkas.pop(broker_id).kill()

    def kill_all(self) -> None:
        """Whatever still runs at the end of a test."""
        for kafka in self.kafkas.values():
            if kafka.process.poll() is None:
                kafka.kill()
        self.ours.kill_all()

    def of_kind(self, kind: Kind) -> list[int]:
        return [broker_id for broker_id, each in self.kinds.items() if each == kind]

    def wait_for_members(self) -> None:
        wait_for_members([each.bootstrap_servers for each in self.ours.brokers.values()])

    def give_control_to(self, kind: Kind) -> int:
        """Let the brokers elect a controller until it is of that kind; returns its id."""
        found: list[int] = []

        def is_of_kind() -> bool:
            found[:] = [controller_of(self.ours)]
            if self.kinds[found[0]] == kind:
                return True
            self.depose()
            return False

        wait_until(is_of_kind, PATIENCE_S)
        self.wait_for_members()
        return found[0]

    def depose(self) -> None:
        """Have another controller elected, as operators of Kafka do it."""
        asyncio.run(self._delete_controller())

    def registered(self) -> set[int]:
        """The brokers whose sessions are alive."""

        async def read() -> set[int]:
            store = await ZooKeeperStore.open(Settings(self.ours.zookeeper.connect, 60_000))
            try:
                return set(await load_brokers(store))
            finally:
                await store.close()

        return asyncio.run(read())

    def pid_of(self, broker_id: int) -> int:
        process = (
            self.ours.brokers[broker_id].process
            if self.kinds[broker_id] == "ours"
            else self.kafkas[broker_id].process
        )
        assert process is not None
        return process.pid

    def wait_for_deletion(self, topic: str) -> None:
        """Return once the controller has nothing more to do for a topic that is being deleted.

        A controller of Kafka's that is deposed before that is of no use if it is elected again:
        "Controller to broker state change requests batch is not empty while creating a new one".
        """
        wait_until(
            lambda: not asyncio.run(self._exists(layout.delete_topic_path(topic))), PATIENCE_S
        )

    async def _exists(self, path: str) -> bool:
        store = await ZooKeeperStore.open(Settings(self.ours.zookeeper.connect, 60_000))
        try:
            return await store.read(path) is not None
        finally:
            await store.close()

    async def _delete_controller(self) -> None:
        store = await ZooKeeperStore.open(Settings(self.ours.zookeeper.connect, 60_000))
        try:
            await store.commit([Delete(layout.CONTROLLER)])
        except BarnabasError:
            pass  # it is gone already
        finally:
            await store.close()


@contextlib.contextmanager
def mixed_cluster(
    directory: Path,
    kinds: Mapping[int, Kind],
    *options: str,
    versions: Mapping[int, str] = {},
    jvm: Sequence[str] = FRUGAL,
) -> Iterator[MixedCluster]:
    """A cluster that runs; what is left of it at the end is killed."""
    cluster = MixedCluster(directory, kinds, *options, versions=versions, jvm=jvm)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill_all()


def described(admin: SyncAdmin, topic: str) -> TopicDescription:
    """As some broker has it, once that one has heard of the topic."""
    found: list[TopicDescription] = []

    def is_known() -> bool:
        with contextlib.suppress(UnknownTopicOrPartition):
            found[:] = admin.describe_topics([topic])
        return bool(found)

    wait_until(is_known, PATIENCE_S)
    return found[0]


def restore_leaders(admin: SyncAdmin) -> None:
    """Return when all replicas are in sync and each partition is led by its preferred one."""

    def is_in_order() -> bool:
        partitions = [each for topic in admin.describe_topics() for each in topic.partitions]
        if any(len(each.isr) < len(each.replicas) for each in partitions):
            return False
        if all(each.leader == each.replicas[0] for each in partitions):
            return True
        admin.elect_leaders(PREFERRED)
        return False

    wait_until(is_in_order, PATIENCE_S)


def name_led_by(admin: SyncAdmin, internal: str, stem: str, brokers: list[int]) -> str:
    """A group or a transactional id whose coordinator is one of these brokers."""
    leaders = [each.leader for each in described(admin, internal).partitions]
    for number in range(10_000):
        name = f"{stem}-{number}"
        if leaders[partition_of(name, len(leaders))] in brokers:
            return name
    raise AssertionError(f"no partition of {internal} is led by {brokers}: {leaders}")
