"""A simulated cluster: machines with disks, the brokers that run on them, and the connections
between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cluster import layout
from barnabas.cluster.layout import GROUP_TOPIC, INTERNAL_TOPICS, TRANSACTION_TOPIC
from barnabas.cluster.store import Create, NodeExists
from barnabas.types import TopicPartition
from simulation.checkers import Checks
from simulation.disk import Disk
from simulation.metadata import Ensemble
from simulation.network import Network
from simulation.options import Options
from simulation.sim_broker import CLUSTER_ID, SimBroker, broker_config
from simulation.topic_configs import MIN_ISR, TopicConfigs
from simulation.world import World

if TYPE_CHECKING:
    from simulation.machines import Machines

_FIRST_PRODUCER_ID = 1_000_000  # above all ids that producers choose for themselves


class Cluster:
    """Everything in a run except the clients."""

    __slots__ = (
        "_producer_ids", "_topics_made", "broker_configs", "brokers", "checks", "configs", "disks",
        "ensemble", "machines", "network", "options", "topics", "world",
    )  # fmt: skip

    def __init__(self, options: Options, machines: Machines) -> None:
        self.options = options
        self.machines = machines
        self.world = World(options.seed)
        self.network = Network(self.world)
        self.checks = Checks(self)
        self.ensemble = Ensemble(self.world, self.checks)
        ids = range(1, options.brokers + 1)
        self.disks = {broker_id: Disk() for broker_id in ids}
        self.broker_configs = {
            each: broker_config(each, options.min_insync_replicas, options.lag_time_max_ms)
            for each in ids
        }
        self.brokers: dict[int, SimBroker] = {}  # the running brokers
        self.topics: dict[str, bytes] = {}
        self.configs = TopicConfigs(self.ensemble)
        self._topics_made = self._producer_ids = 0
        base = [Create(path) for path in layout.BASE_PATHS]
        cluster_id = Create(layout.CLUSTER_ID, layout.encode_cluster_id(CLUSTER_ID))
        self.ensemble.do([*base, cluster_id], 0)

    def create_topics(self) -> None:
        """Write the topics' nodes, as an administrator would."""
        options = self.options
        for number in range(options.topics):
            self.create_topic(f"t{number}")
        copies = min(3, options.brokers)
        if options.transactional:
            self._create_topic(TRANSACTION_TOPIC, options.transaction_partitions, copies, 2)
        if options.members:
            self._create_topic(GROUP_TOPIC, 1, copies, 2)

    def create_topic(self, name: str) -> None:
        """Create a topic with an id that no other topic has had."""
        options = self.options
        self._create_topic(
            name, options.partitions, options.replication_factor, options.min_insync_replicas
        )

    def _create_topic(self, name: str, partitions: int, copies: int, min_isr: int) -> None:
        self._topics_made += 1
        topic_id, first = bytes([self._topics_made]) * 16, len(self.topics)
        replicas = {
            partition: [1 + (first + partition + i) % self.options.brokers for i in range(copies)]
            for partition in range(partitions)
        }
        self.topics[name] = topic_id
        config = {MIN_ISR: str(min_isr)}
        self.ensemble.do(
            [
                Create(layout.topic_config_path(name), layout.encode_config(config)),
                Create(layout.topic_path(name), layout.encode_topic(topic_id, replicas)),
            ],
            0,
        )

    def request_deletion(self, name: str) -> bool:
        """Request deletion of a topic; returns False if it does not exist or its deletion was
        already requested."""
        if self.ensemble.tree.read(layout.topic_path(name)) is None:
            return False
        try:
            self.ensemble.do([Create(layout.delete_topic_path(name))], 0)
        except NodeExists:
            return False
        return True

    def has_topic(self, name: str) -> bool:
        """Return whether there is any trace of the topic."""
        read = self.ensemble.tree.read
        paths = (layout.topic_path(name), layout.delete_topic_path(name))
        return any(read(path) is not None for path in paths)

    def new_producer_id(self) -> int:
        """Return a producer id that has not been given out before."""
        self._producer_ids += 1
        return _FIRST_PRODUCER_ID + self._producer_ids

    @property
    def partitions(self) -> list[TopicPartition]:
        """The partitions that clients write to."""
        return [each for each in self.all_partitions if each.topic not in INTERNAL_TOPICS]

    @property
    def all_partitions(self) -> list[TopicPartition]:
        options = self.options
        internal = {TRANSACTION_TOPIC: options.transaction_partitions, GROUP_TOPIC: 1}
        return [
            TopicPartition(name, number)
            for name in self.topics
            for number in range(internal.get(name, options.partitions))
        ]

    @property
    def controller(self) -> SimBroker | None:
        """A broker that believes it is the controller."""
        for broker in self.brokers.values():
            if broker.controller.is_active:
                return broker
        return None

    def start(self, broker_id: int) -> None:
        if broker_id in self.brokers:
            return
        self.world.tell("broker {} starts", broker_id)
        self.disks[broker_id].has_failed = False  # it has been repaired as far as possible
        broker = self.machines.broker(self, broker_id, self.disks[broker_id])
        self.brokers[broker_id] = broker
        self.network.processes[broker_id] = broker
        broker.start()

    def kill(self, broker_id: int, *, loses_power: bool = False) -> bool:
        """End the process at this event; if its machine loses power, unflushed data is lost,
        too."""
        broker = self.brokers.get(broker_id)
        if broker is not None:
            self.ended(broker)
        if loses_power:
            lost = self.disks[broker_id].lose_power(self.world.random)
            self.world.tell("broker {} loses power, and {} entries", broker_id, lost)
        elif broker is not None:
            self.world.tell("broker {} is killed", broker_id)
        return broker is not None

    def are_all_in_sync(self) -> bool:
        """Return whether all replicas are running and every partition has a leader with all
        replicas in its ISR."""
        led = [
            replica
            for broker in self.brokers.values()
            for replica in broker.replicas
            if replica.partition.is_leader
        ]
        whole = {
            each.topic_partition
            for each in led
            if sorted(each.partition.isr) == sorted(each.partition.replicas)
        }
        return (
            len(self.brokers) == len(self.disks)
            and len(whole) == len(led)
            and whole >= set(self.all_partitions)
        )

    def ended(self, broker: SimBroker) -> None:
        """Record that a broker's process has ended."""
        broker.life.is_over = True
        broker.loop.put_away()
        broker.session.silent()
        self.brokers.pop(broker.broker_id, None)
        for log in broker.disk.logs.values():
            log.drop_staged()
        self.network.gone(broker.broker_id)

    def pause(self, broker_id: int, for_ms: int) -> None:
        """Stop a broker for a while; it does not know that it was stopped."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            return
        life = broker.life
        life.paused_until_ms = max(life.paused_until_ms, self.world.now_ms + for_ms)
        broker.session.silent()
        self.world.tell("broker {} stands still for {} ms", broker_id, for_ms)
        self.world.at(for_ms, None, broker.session.reachable)
