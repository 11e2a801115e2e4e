"""A simulated cluster: machines with disks, the brokers that live on them, the ways between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cluster import layout
from barnabas.cluster.store import Create
from barnabas.simulation.checkers import Checks
from barnabas.simulation.controller_pump import ControllerPump
from barnabas.simulation.disk import Disk
from barnabas.simulation.metadata import Ensemble
from barnabas.simulation.network import Network
from barnabas.simulation.options import Options
from barnabas.simulation.sim_broker import SimBroker
from barnabas.simulation.world import World
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.simulation.machines import Machines


class Cluster:
    """Everything that there is, but the clients."""

    __slots__ = (
        "brokers", "checks", "disks", "ensemble", "machines", "network", "options", "topics",
        "world",
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
        self.brokers: dict[int, SimBroker] = {}  # those that run
        self.topics: dict[str, bytes] = {}
        self.ensemble.do([Create(path) for path in layout.BASE_PATHS], 0)

    def create_topics(self) -> None:
        """Write their nodes, as an administrator would."""
        options = self.options
        config = {"min.insync.replicas": str(options.min_insync_replicas)}
        for number in range(options.topics):
            name, topic_id = f"t{number}", bytes([number + 1]) * 16
            replicas = {
                partition: [
                    1 + (number + partition + i) % options.brokers
                    for i in range(options.replication_factor)
                ]
                for partition in range(options.partitions)
            }
            self.topics[name] = topic_id
            self.ensemble.do(
                [
                    Create(layout.topic_config_path(name), layout.encode_config(config)),
                    Create(layout.topic_path(name), layout.encode_topic(topic_id, replicas)),
                ],
                0,
            )

    @property
    def partitions(self) -> list[TopicPartition]:
        return [
            TopicPartition(name, number)
            for name in self.topics
            for number in range(self.options.partitions)
        ]

    @property
    def pump(self) -> ControllerPump | None:
        """The office of a broker that takes itself for the controller."""
        for broker in self.brokers.values():
            if broker.pump.controller is not None:
                return broker.pump
        return None

    def start(self, broker_id: int) -> None:
        if broker_id in self.brokers:
            return
        self.world.tell("broker {} starts", broker_id)
        broker = self.machines.broker(self, broker_id, self.disks[broker_id])
        self.brokers[broker_id] = broker
        self.network.processes[broker_id] = broker
        broker.start()

    def kill(self, broker_id: int, *, loses_power: bool = False) -> bool:
        """The process is gone at this event; with its machine's power, what was not flushed too."""
        broker = self.brokers.get(broker_id)
        if broker is not None:
            self.ended(broker)
        if loses_power:
            lost = self.disks[broker_id].lose_power(self.world.random)
            self.world.tell("broker {} loses power, and {} entries", broker_id, lost)
        elif broker is not None:
            self.world.tell("broker {} is killed", broker_id)
        return broker is not None

    def ended(self, broker: SimBroker) -> None:
        """A process is over."""
        broker.life.is_over = True
        broker.session.silent()
        self.brokers.pop(broker.broker_id, None)
        self.checks.died(broker)
        self.network.gone(broker.broker_id)

    def pause(self, broker_id: int, for_ms: int) -> None:
        """It does nothing for a while, and does not know of it."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            return
        life = broker.life
        life.paused_until_ms = max(life.paused_until_ms, self.world.now_ms + for_ms)
        broker.session.silent()
        self.world.tell("broker {} stands still for {} ms", broker_id, for_ms)
        self.world.at(for_ms, None, broker.session.heard)
