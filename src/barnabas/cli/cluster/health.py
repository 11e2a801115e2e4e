"""Finds a cluster's problems in its brokers' reports. Pure.

Cluster-wide problems come first (no controller, or a dead broker that has replicas), then the worst
problem of each partition: offline, below min.insync.replicas, or under-replicated. Just after a
crash, brokers may still report the previous state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.counted import counted
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import ClusterDescription, TopicDescription
    from barnabas.client.view import PartitionView

NO_CONTROLLER, NO_BROKER, LEFT_OUT = "no-controller", "missing-broker", "left-out"
OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED = "offline", "under-min-isr", "under-replicated"


class Problem(NamedTuple):
    kind: str
    text: str
    partition: TopicPartition | None = None


def problems(
    cluster: ClusterDescription,
    topics: Iterable[TopicDescription],
    min_isr: dict[str, int],
) -> Iterator[Problem]:
    """Yield the problems, starting with the worst. For each partition, only the worst problem is
    included. `min_isr` maps topics to min.insync.replicas.
    """
    live = {broker.broker_id for broker in cluster.brokers}
    topics = list(topics)
    # Without a controller, a broker returns -1 or the previous controller.
    if cluster.controller_id not in live:
        yield Problem(NO_CONTROLLER, "no live broker is the controller: nothing can be changed")
    yield from (Problem(LEFT_OUT, reason) for reason in cluster.left_out)
    lacking = Counter(
        broker_id
        for topic in topics
        for partition in topic.partitions
        for broker_id in partition.replicas
        if broker_id not in live
    )
    # A broker without replicas may have been removed on purpose, so it is not reported.
    for broker_id, count in sorted(lacking.items()):
        replicas = counted(count, "partition")
        yield Problem(NO_BROKER, f"broker {broker_id} is not alive, and has replicas of {replicas}")
    found = [
        problem
        for topic in topics
        for partition in topic.partitions
        for problem in _of(topic.name, partition, live, min_isr.get(topic.name, 1))
    ]
    for kind in (OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED):
        yield from (each for each in found if each.kind == kind)


def _of(
    topic: str, partition: PartitionView, live: Collection[int], min_isr: int
) -> Iterator[Problem]:
    name = TopicPartition(topic, partition.partition)
    isr, replicas = len(partition.isr), len(partition.replicas)
    in_sync = f"in sync {_ids(partition.isr)} of {_ids(partition.replicas)}"
    if partition.leader < 0 or partition.leader not in live:
        text = f"{name} has no leader: it can be neither read nor written ({in_sync})"
        yield Problem(OFFLINE, text, name)
    # The number of in-sync replicas cannot exceed the replication factor, whatever the config says.
    elif isr < min(min_isr, replicas):
        text = (
            f"{name} rejects writes with acks=all: {in_sync}, but min.insync.replicas is {min_isr}"
        )
        yield Problem(UNDER_MIN_ISR, text, name)
    elif isr < replicas:
        yield Problem(UNDER_REPLICATED, f"{name} is under-replicated: {in_sync}", name)


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers)) or "none"
