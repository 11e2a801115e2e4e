"""Partitions that were moved to other brokers while this one could not hear of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import Cluster
from barnabas.controller.topics import NewTopic
from barnabas.errors import NotLeaderOrFollower
from barnabas.types import TopicPartition
from tests.kit.broker.scenes import append, play, session_of
from tests.kit.waiting import until

T0 = TopicPartition("t", 0)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Broker 1 is the first controller."""
    with Cluster(3) as made:
        yield made


def test_zk_5_who_led_what_was_moved_away_meanwhile_leads_it_no_more(cluster: Cluster) -> None:
    """It gets no StopReplica: it is no replica any more. Its log stays, as Kafka's would."""

    async def scene() -> None:
        controller, away = cluster.server(1), cluster.server(3)
        for topic in ("t", "stays"):
            new = NewTopic(topic, assignment={0: [3, 1]})
            await controller.node.controller.create_topic(new)
        await until(lambda: "stays" in away.node.image.topics)
        append(away, [0])
        assert away.node.replicas.leader_of(T0).log.log_end_offset == 1
        session_of(away).expire()
        await until(lambda: 3 not in controller.node.image.brokers)
        await controller.node.controller.reassign({T0: (1, 2)})
        await until(lambda: controller.node.image.topics["t"].partitions[0].replicas == (1, 2))
        assert away.node.replicas.leader_of(T0), "it has not heard of anything"
        session_of(away).reconnect()
        await until(lambda: away.node.image.topics["t"].partitions[0].replicas == (1, 2))
        with pytest.raises(NotLeaderOrFollower):
            away.node.replicas.replica_of(T0)
        assert T0 in away.node.replicas.store.logs
        await until(lambda: away.node.replicas.replica_of(("stays", 0)).partition.leader == 1)

    play(cluster, scene)
