"""Injects faults and makes operators' requests; each fault is undone after its time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.cluster.store import NoNode
from barnabas.errors import NotController
from simulation.cluster import Cluster
from simulation.options import (
    ALTER_CONFIG,
    EMPTIED,
    FIRST_TRANSACTIONAL,
    STALL,
    Fault,
)
from simulation.sim_broker import SimBroker
from simulation.topic_configs import MIN_ISR

_BOUNCE_MS = 30
_SHUTDOWN_MS = 2500
_REPAIR_MS = 800
_LOOK_EVERY_MS = 120


class Faults:
    """Carries out a plan; `done` counts the faults that took effect."""

    __slots__ = ("_cluster", "done")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.done = 0
        for fault in cluster.options.faults:
            cluster.world.at(fault.at_ms, None, self._happen, fault)

    def _happen(self, fault: Fault) -> None:
        kind = fault.kind
        if kind in ("kill", "bounce", "power", "power bounce", "power all", "stop"):
            self._end(fault)
        elif kind == EMPTIED:
            self._empty(fault)
        elif kind in ("disk fails", "disk full"):
            self._break_disk(fault)
        elif kind == "delete topic":
            self._delete_topic(fault)
        elif kind == STALL:
            self._stall(fault)
        elif kind == ALTER_CONFIG:
            self._alter_config(fault)
        elif kind in ("cut", "isolate", "reset", "slow"):
            self._disturb_network(fault)
        elif kind in ("pause", "store cut", "expire", "flaky store"):
            self._disturb_session(fault)
        else:
            self._operate(fault)

    def _end(self, fault: Fault) -> None:
        cluster, kind = self._cluster, fault.kind
        after_ms = _BOUNCE_MS if "bounce" in kind else fault.for_ms
        if kind == "stop":
            broker = cluster.brokers.get(fault.first)
            if broker is not None:
                self.done += 1
                cluster.world.tell("broker {} gets a SIGTERM", fault.first)
                cluster.world.start(broker.life, broker.leave())
            self._start_later(fault.first, fault.for_ms + _SHUTDOWN_MS)
            return
        victims = list(cluster.disks) if kind == "power all" else [fault.first]
        for broker_id in victims:
            self.done += cluster.kill(broker_id, loses_power="power" in kind)
            jitter_ms = cluster.world.random.randrange(1000) if kind == "power all" else 0
            self._start_later(broker_id, after_ms + jitter_ms)

    def _empty(self, fault: Fault) -> None:
        cluster, broker_id = self._cluster, fault.first
        if cluster.are_all_in_sync():
            self.done += 1
            cluster.kill(broker_id)
            cluster.world.tell("broker {} has a new disk", broker_id)
            cluster.disks[broker_id].empty()
            self._start_later(broker_id, fault.for_ms)

    def _break_disk(self, fault: Fault) -> None:
        """Break or fill a disk. It is repaired after a while, which the broker notices when it is
        restarted."""
        cluster, broker_id = self._cluster, fault.first
        broker = cluster.brokers.get(broker_id)
        if broker is None:
            return
        self.done += 1
        if fault.kind == "disk full":
            cluster.world.tell("the disk of broker {} is full for {} ms", broker_id, fault.for_ms)
            cluster.disks[broker_id].is_full = True
            cluster.world.at(fault.for_ms, None, self._make_room, broker_id)
        else:
            broker.fail_disk("it cannot be read")
        cluster.world.at(fault.for_ms + _REPAIR_MS, None, self._repair, broker_id)

    def _make_room(self, broker_id: int) -> None:
        self._cluster.disks[broker_id].is_full = False

    def _repair(self, broker_id: int) -> None:
        cluster = self._cluster
        if cluster.disks[broker_id].has_failed:
            cluster.kill(broker_id)
            self._start_later(broker_id, _BOUNCE_MS)

    def _delete_topic(self, fault: Fault) -> None:
        """Delete a topic, and create another one with the same name once the first is gone."""
        cluster = self._cluster
        names = sorted({each.topic for each in cluster.partitions})
        name = names[fault.for_ms % len(names)]
        if cluster.request_deletion(name):
            self.done += 1
            cluster.world.tell("an operator deletes {}", name)
            cluster.world.at(_LOOK_EVERY_MS, None, self._make_again, name)

    def _make_again(self, name: str) -> None:
        cluster = self._cluster
        if cluster.has_topic(name):
            cluster.world.at(_LOOK_EVERY_MS, None, self._make_again, name)
        else:
            cluster.world.tell("an operator makes another {}", name)
            cluster.create_topic(name)

    def _alter_config(self, fault: Fault) -> None:
        cluster, options = self._cluster, self._cluster.options
        names = sorted({each.topic for each in cluster.partitions})
        name = names[fault.for_ms % len(names)]
        least, most = options.min_insync_replicas, options.replication_factor
        min_isr = least + fault.for_ms % (most - least + 1)
        with suppress(NoNode):  # it is being deleted
            cluster.configs.alter(name, {MIN_ISR: str(min_isr)})
            self.done += 1
            cluster.world.tell("an operator sets {} of {} to {}", MIN_ISR, name, min_isr)

    def _start_later(self, broker_id: int, after_ms: int) -> None:
        self._cluster.world.at(after_ms, None, self._cluster.start, broker_id)

    def _disturb_network(self, fault: Fault) -> None:
        cluster, network, first = self._cluster, self._cluster.network, fault.first
        self.done += 1
        if fault.kind == "reset":
            cluster.world.tell("all connections of broker {} break", first)
            network.reset(first)
            return
        if fault.kind == "slow":
            cluster.world.tell("broker {} is slow for {} ms", first, fault.for_ms)
            network.slow[first] = network.slow.get(first, 0) + 40
            cluster.world.at(fault.for_ms, None, self._hasten, first)
            return
        ways = [(first, fault.second)]
        if fault.kind == "isolate":
            others = [each for each in cluster.disks if each != first]
            ways = [(first, other) for other in others] + [(other, first) for other in others]
        cluster.world.tell("{} cut for {} ms", ways, fault.for_ms)
        for way in ways:
            network.cut(*way)
            cluster.world.at(fault.for_ms, None, network.heal, *way)

    def _stall(self, fault: Fault) -> None:
        cluster = self._cluster
        self.done += 1
        cluster.world.tell("what transactional clients ask stands still for {} ms", fault.for_ms)
        for number in range(cluster.options.transactional):
            cluster.network.stall(FIRST_TRANSACTIONAL - number, fault.for_ms)

    def _hasten(self, broker_id: int) -> None:
        slow = self._cluster.network.slow
        slow[broker_id] -= 40
        if not slow[broker_id]:
            del slow[broker_id]

    def _disturb_session(self, fault: Fault) -> None:
        cluster = self._cluster
        if fault.kind == "flaky store":
            self.done += 1
            cluster.world.tell("the metadata store loses answers for {} ms", fault.for_ms)
            cluster.ensemble.is_flaky = True
            cluster.world.at(fault.for_ms, None, self._steady)
            return
        broker = cluster.brokers.get(fault.first)
        if broker is None:
            return
        self.done += 1
        if fault.kind == "pause":
            cluster.pause(fault.first, fault.for_ms)
        elif fault.kind == "expire":
            cluster.world.tell("the session of broker {} expires", fault.first)
            broker.session.expire()
        else:
            cluster.world.tell("broker {} cannot reach the metadata store for {} ms",
                               fault.first, fault.for_ms)  # fmt: skip
            broker.session.cut_off()
            cluster.world.at(fault.for_ms, None, broker.session.reconnect)

    def _steady(self) -> None:
        self._cluster.ensemble.is_flaky = False

    def _operate(self, fault: Fault) -> None:
        cluster, kind = self._cluster, fault.kind
        if kind == "delete records":
            broker = cluster.brokers.get(fault.first)
            if broker is None:
                return
            for name, replica in broker.hosted.items():
                if replica.partition.is_leader and name.topic not in INTERNAL_TOPICS:
                    self.done += 1
                    cluster.world.tell("broker {} deletes records of {}", fault.first, name)
                    broker.loop.call(replica.delete_records)
            return
        broker = cluster.controller
        if broker is None:
            return
        self.done += 1
        cluster.world.tell("an operator asks for: {}", kind)
        if kind == "reassign":
            self._reassign(broker, fault)
            return
        is_unclean = kind == "unclean"
        cluster.checks.is_unclean_requested |= is_unclean
        self._ask(broker, partial(broker.controller.elect_leaders, None, is_unclean))

    def _reassign(self, broker: SimBroker, fault: Fault) -> None:
        cluster, random = self._cluster, self._cluster.world.random
        names = cluster.all_partitions
        name = names[fault.for_ms % len(names)]
        others = [each for each in cluster.disks if each != fault.first]
        is_internal = name.topic in INTERNAL_TOPICS
        count = (3 if is_internal else cluster.options.replication_factor) - 1
        replicas = (fault.first, *random.sample(others, count))
        cluster.world.tell("{} is to move to {}", name, replicas)
        self._ask(broker, partial(broker.controller.reassign, {name: replicas}))

    def _ask(self, broker: SimBroker, ask: Callable[[], Awaitable[object]]) -> None:
        broker.loop.start(_ignoring_refusal(ask))


async def _ignoring_refusal(ask: Callable[[], Awaitable[object]]) -> None:
    """Ignore a refusal, because operators check the outcome themselves."""
    with suppress(NotController):
        await ask()
