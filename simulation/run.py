"""Makes one run: first with faults, and then without faults, until everything has recovered.

safety      every step is checked while faults happen and clients write
liveness    faults have ended: a leader for each partition, every replica in sync, equal logs
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.cluster import layout
from barnabas.errors import NotController
from barnabas.types import TopicPartition
from simulation.cluster import Cluster
from simulation.faults import Faults
from simulation.machines import Machines
from simulation.members import GroupMember
from simulation.options import FIRST_MEMBER, FIRST_TRANSACTIONAL, Options
from simulation.rules import Violation
from simulation.story import digest, tell
from simulation.topic_configs import MIN_ISR
from simulation.transactional import TransactionalProducer
from simulation.workload import Consumer, Counts, Producer

_TOPICS_AT_MS = 300
_HEALED_AFTER_MS = 3000
_DEADLINE_MS = 40_000
_LOOK_EVERY_MS = 250
_STORY_LENGTH = 70


class Outcome(NamedTuple):
    """The outcome of a run; no `violation` is a success."""

    options: Options
    violation: Violation | None
    judged: dict[str, int]
    acknowledged: int
    promises: int
    faults: int
    events: int
    digest: str
    story: str


def run(options: Options, machines: Machines | None = None) -> Outcome:
    """Run the simulation; the same options give the same outcome on any machine."""
    cluster = Cluster(options, machines or Machines())
    faults = Faults(cluster)
    counts = Counts()
    violation = None
    try:
        _run(cluster, counts)
    except Violation as found:
        violation = found
    except Exception as error:
        # An error in a machine is a finding like any other, with its story.
        violation = Violation("assertions", repr(error))
        violation.__cause__ = error
    cluster.world.put_away()
    cluster.checks.judged["assertions"] = cluster.world.events
    if violation is not None:
        cluster.world.tell("BROKEN: {}", violation)
    return Outcome(
        options,
        violation,
        cluster.checks.judged,
        counts.acknowledged,
        cluster.checks.promises,
        faults.done,
        cluster.world.events,
        digest(cluster.world.lines),
        tell(options, cluster.world.lines, _STORY_LENGTH) if violation is not None else "",
    )


def _run(cluster: Cluster, counts: Counts) -> None:
    options, world = cluster.options, cluster.world
    for broker_id in cluster.disks:
        cluster.start(broker_id)
    world.at(_TOPICS_AT_MS, None, cluster.create_topics)
    producers: list[Producer | TransactionalProducer] = []
    for number in range(options.producers):
        # Most of them ask for acks=all, because only those are promised anything.
        acks = (-1, -1, 1, -1, 0)[number % 5]
        producers.append(
            cluster.machines.producer(cluster, -1 - number, acks, number % 2 == 0, counts)
        )
    for number in range(options.transactional):
        # If there are three, the first two share an id: each is the other's zombie.
        producers.append(
            cluster.machines.transactional(
                cluster, FIRST_TRANSACTIONAL - number, f"x{number // 2}", counts
            )
        )
    consumers = [
        Consumer(cluster, -100 - number, is_committed=bool(options.transactional and not number))
        for number in range(options.consumers)
    ]
    members = [
        GroupMember(cluster, FIRST_MEMBER - number, f"g{number % max(options.members // 2, 1)}")
        for number in range(options.members)
    ]
    world.run_until(_TOPICS_AT_MS + 1)
    for member in members:
        world.start(member.life, member.run())
    for producer in producers:
        world.start(producer.life, producer.run())
    for consumer in consumers:
        world.start(consumer.life, consumer.run())
    world.run_until(options.faults_end_at_ms)
    _heal(cluster)
    world.run_until(world.now_ms + _HEALED_AFTER_MS)
    stopping = [*producers, *members]
    for client in stopping:
        client.is_stopping = True
    deadline_ms = world.now_ms + _DEADLINE_MS
    while world.now_ms < deadline_ms:
        world.run_until(world.now_ms + _LOOK_EVERY_MS)
        if what_is_missing(cluster) is None and all(each.has_stopped for each in stopping):
            cluster.checks.judge("liveness", True, "")
            cluster.checks.transactions.settle()
            return
    missing = what_is_missing(cluster) or "a producer never got an answer for its record"
    cluster.checks.judge("liveness", False, "{}", missing)


def _heal(cluster: Cluster) -> None:
    """Undo the faults that do not end by themselves, and start the brokers that are down."""
    cluster.world.tell("no more faults")
    for broker_id, disk in cluster.disks.items():
        disk.is_full = False
        if disk.has_failed:
            cluster.kill(broker_id)  # and later started with a repaired disk
        cluster.world.at(500, None, cluster.start, broker_id)
        cluster.world.at(_HEALED_AFTER_MS, None, cluster.start, broker_id)
        cluster.world.at(3 * _HEALED_AFTER_MS, None, cluster.start, broker_id)


def what_is_missing(cluster: Cluster) -> str | None:
    """Return the first thing that keeps the cluster from being well, in words, or None if it is
    well."""
    if len(cluster.brokers) < len(cluster.disks):
        return f"only brokers {list(cluster.brokers)} run"
    for topic in cluster.topics:
        if layout.delete_topic_path(topic) in cluster.ensemble.tree.nodes:
            return f"{topic} is still being deleted"
        if not cluster.has_topic(topic):
            return f"{topic} is yet to be made again"
    for topic in cluster.topics:
        missing = _missing_config(cluster, topic)
        if missing is not None:
            return missing
    for name in cluster.all_partitions:
        missing = _missing_of(cluster, name)
        if missing is not None:
            return f"{name}: {missing}"
    return None


def _missing_config(cluster: Cluster, topic: str) -> str | None:
    """Return where the topic's config is missing, at the controller or at a broker that hosts the
    topic, or None if it is not missing."""
    config, controller = cluster.configs[topic], cluster.controller
    if controller is None:
        return "no broker is the controller"
    try:
        known = controller.controller.image.topics.get(topic)
    except NotController:
        return "the controller is still reading the cluster's state"
    if known is None or known.config != config:
        return f"the controller has {known} for {topic} with {config}"
    for broker in cluster.brokers.values():
        for name, hosted in broker.hosted.items():
            min_isr = hosted.partition.min_insync_replicas
            if name.topic == topic and str(min_isr) != config[MIN_ISR]:
                return f"broker {broker.broker_id} has min ISR {min_isr} of {topic} with {config}"
    return None


def _missing_of(cluster: Cluster, name: TopicPartition) -> str | None:
    history = cluster.checks.history(name)
    stored = history.stored
    if stored is None or stored.leader < 0:
        return f"no leader: {stored}"
    for broker in cluster.brokers.values():
        topic = broker.image.topics.get(name.topic)
        state = None if topic is None else topic.partitions.get(name.partition)
        if state is None or (state.leader, state.leader_epoch, state.isr) != stored[:3]:
            return f"broker {broker.broker_id} takes {state} for {stored}"
    leader = cluster.brokers[stored.leader].hosted.get(name)
    if leader is None:
        return f"broker {stored.leader} does not lead it yet"
    node = cluster.ensemble.tree.read(layout.topic_path(name.topic))
    assigned = layout.decode_topic(name.topic, None if node is None else node.data)
    if assigned.adding or assigned.removing:
        return f"it still moves: {assigned}"
    replicas = assigned.replicas[name.partition]
    if sorted(stored.isr) != sorted(replicas):
        return f"ISR {stored.isr} of {replicas}"
    for replica in replicas:
        hosted = cluster.brokers[replica].hosted.get(name)
        if hosted is None:
            return f"broker {replica} does not host it"
        end = leader.log.log_end_offset
        if (hosted.log.log_end_offset, hosted.partition.high_watermark) != (end, end):
            return (
                f"broker {replica} is at {hosted.log.log_end_offset}, HW "
                f"{hosted.partition.high_watermark}, its leader {stored.leader} at {end}"
            )
        start = max(hosted.log.base, leader.log.base)
        if hosted.log.entries_in(start, end, end) != leader.log.entries_in(start, end, end):
            return f"broker {replica} has other records than its leader {stored.leader}"
    if not history.is_forked and history.first_missing(leader.log, 0, end) is not None:
        return f"its leader {stored.leader} lacks committed records"
    return cluster.checks.transactions.open_in(name)
