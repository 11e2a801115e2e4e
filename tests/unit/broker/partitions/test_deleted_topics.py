"""Topics that are deleted while a broker cannot hear of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas import Cluster
from barnabas.controller.topics import NewTopic
from tests.kit.broker.brokers import delete_topic
from tests.kit.broker.scenes import play, session_of
from tests.kit.waiting import until


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Broker 1 is the first controller."""
    with Cluster(3) as made:
        yield made


@pytest.mark.parametrize("next_controller", [1, 3])
def test_zk_4_a_topic_that_went_while_a_broker_was_away_is_not_offered_for_ever(
    cluster: Cluster, next_controller: int
) -> None:
    """Its process lives on, and with it what it has heard before; it may be the controller next."""

    async def scene() -> None:
        controller, away = cluster.server(1), cluster.server(3)
        for topic in ("goes", "stays"):
            await controller.node.controller.create_topic(NewTopic(topic, assignment={0: [1, 2]}))
        await until(lambda: "stays" in away.node.image.topics)
        session_of(away).expire()
        await until(lambda: 3 not in controller.node.image.brokers)
        await delete_topic(controller.node.controller, "goes")
        assert "goes" in away.node.image.topics
        if next_controller == 3:
            for number in (1, 2):
                session_of(cluster.server(number)).expire()
        session_of(away).reconnect()
        await until(lambda: away.node.controller.controller_id == next_controller)
        await until(lambda: 3 in cluster.server(next_controller).node.image.brokers)
        await until(lambda: "goes" not in away.node.image.topics)
        assert away.node.image.topics.keys() == {"stays"}
        assert list(away.node.image.topic_names.values()) == ["stays"]
        for number in (1, 2):
            if next_controller == 3:
                session_of(cluster.server(number)).reconnect()
                await until(lambda n=number: n in away.node.image.brokers)  # type: ignore[misc]

    play(cluster, scene)


def test_zk_4_a_broker_not_notified_before_its_controller_died_learns_of_a_deletion(
    cluster: Cluster,
) -> None:
    async def scene() -> None:
        controller, late = cluster.server(1), cluster.server(3)
        await controller.node.controller.create_topic(NewTopic("t", assignment={0: [1, 2]}))
        await until(lambda: "t" in late.node.image.topics)
        image = late.node.image
        await delete_topic(controller.node.controller, "t")
        await until(lambda: "t" not in late.node.image.topics)
        late.node.view.update(image)  # as if the notification had not arrived
        session_of(controller).expire()
        session_of(controller).reconnect()
        await until(lambda: late.node.image.controller_epoch == 2)
        await until(lambda: "t" not in late.node.image.topics)
        await asyncio.sleep(0)

    play(cluster, scene)
