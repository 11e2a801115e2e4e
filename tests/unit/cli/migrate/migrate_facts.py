"""Builds what a cluster reports to `barnabas migrate`, without one."""

from __future__ import annotations

from barnabas.cli.migrate.facts import BARNABAS, KAFKA, BrokerFacts, ClusterFacts
from barnabas.client.admin.admin import TopicDescription
from barnabas.client.channel import BrokerAddress
from barnabas.client.view import PartitionView
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)


def broker(broker_id: int, kind: str = KAFKA) -> BrokerFacts:
    return BrokerFacts(broker_id, BrokerAddress(broker_id, "localhost", 9_000), kind)


def facts(
    *kinds: str | None,
    controller: int = 1,
    leader: int = 1,
    replicas: tuple[int, ...] = (1, 2, 3),
    isr: tuple[int, ...] | None = None,
) -> ClusterFacts:
    """Brokers 1, 2, ... of these kinds (None: not alive) with one partition."""
    brokers = {n: broker(n, kind) for n, kind in enumerate(kinds, 1) if kind is not None}
    view = PartitionView(0, leader, 1, replicas, replicas if isr is None else isr, ())
    return ClusterFacts(
        "cluster",
        controller,
        brokers,
        (TopicDescription("t", bytes(16), False, (view,)),),
        min_isr={"t": 2},
    )


KKK = facts(KAFKA, KAFKA, KAFKA)
BKK = facts(BARNABAS, KAFKA, KAFKA, leader=2)
