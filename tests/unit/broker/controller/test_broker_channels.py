"""RE-10: the channels learn the versions of each broker, and one that is too old is left out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from barnabas.cluster import layout
from barnabas.cluster.image import TopicImage
from barnabas.cluster.store import Operation, OutcomeUnknown
from barnabas.controller.topics import NewTopic
from barnabas.errors import InvalidReplicationFactor, NotController
from barnabas.protocol.api import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA
from tests.kit.broker.brokers import Brokers, SomeBroker, assigned, scenario
from tests.kit.waiting import until


async def add_old_broker(them: Brokers) -> SomeBroker:
    """The fourth broker, with the versions of Kafka 2.3, once the controller leaves it out."""
    old = SomeBroker(them.store.session(), 4)
    old.newest = {LEADER_AND_ISR: 2, UPDATE_METADATA: 5, STOP_REPLICA: 1}
    them.all[4] = old
    await old.start()
    await until(lambda: them[1].runner.left_out)
    return old


def test_a_broker_without_our_versions_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """It gets no replica and no request, whichever broker creates a topic; it is named once."""

    async def play(them: Brokers) -> None:
        old = await add_old_broker(them)
        (reason,) = them[1].runner.left_out
        assert reason.startswith(
            "broker 4 is excluded because it does not support LeaderAndIsr 5 (it has"
        )
        assert them[2].runner.left_out == ()
        ours = [1, 2, 3]
        await until(lambda: all(sorted(them[each].image.brokers) == ours for each in ours))
        with pytest.raises(InvalidReplicationFactor):
            await them[1].runner.create_topic(NewTopic("t", replication_factor=4))
        (created,) = await them[2].runner.auto_create_topics([NewTopic("u", 8, 3)])
        assert isinstance(created, TopicImage)
        assert {each for one in created.partitions.values() for each in one.replicas} == {*ours}
        assert old.received == []
        assert caplog.text.count("is excluded") == 1
        assert [each for each in caplog.records if each.levelname == "ERROR"] == []

    scenario(play)


def test_the_next_controller_leaves_it_out_too() -> None:
    async def play(them: Brokers) -> None:
        await add_old_broker(them)
        await them[1].die()
        await until(lambda: any(them[each].runner.left_out for each in (2, 3)))

    scenario(play)


def test_a_later_term_of_the_same_controller_leaves_it_out_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def play(them: Brokers) -> None:
        await add_old_broker(them)
        commit = them[1].session.commit

        async def lose_the_answer(operations: Sequence[Operation]) -> list[str | int]:
            if operations[0].path != layout.CONTROLLER_EPOCH:  # not the controller's own
                return await commit(operations)
            them[1].session.commit = commit  # type: ignore[method-assign]
            raise OutcomeUnknown(operations[0].path, "the connection broke")

        them[1].session.commit = lose_the_answer  # type: ignore[method-assign]
        with pytest.raises(NotController):
            await them[1].runner.create_topic(assigned(1))
        await until(lambda: caplog.text.count("is excluded") == 2 and them[1].runner.left_out)

    scenario(play)
