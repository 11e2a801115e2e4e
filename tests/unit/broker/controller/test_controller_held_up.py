"""What must not keep a controller from its work: endless questions, and nodes written by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from barnabas.cluster import layout
from barnabas.cluster.store import Operation, Set
from barnabas.types import TopicPartition
from tests.kit.broker.brokers import T0, Brokers, alive, assigned, made, scenario
from tests.kit.waiting import until


def test_re_10_who_asks_again_and_again_holds_up_no_election() -> None:
    """As leaders do whose followers come and go: two are enough for a question at any time."""

    async def play(them: Brokers) -> None:
        for name in ("t", "u"):
            await made(them, assigned(3, 1, 2, name=name))
        controller = them[1].runner
        commit = them.store.commit_as

        async def slow(session_id: int, operations: Sequence[Operation]) -> list[str | int]:
            await asyncio.sleep(0.005)
            return await commit(session_id, operations)

        async def move_about(name: TopicPartition) -> None:
            while True:
                for targets in ((3, 2, 1), (3, 1, 2)):
                    await controller.reassign({name: targets})

        them.store.commit_as = slow  # type: ignore[method-assign]
        names = [TopicPartition(name, 0) for name in ("t", "u")]
        asking = [asyncio.ensure_future(move_about(name)) for name in names]
        await asyncio.sleep(0.1)
        await them[3].die()
        await until(lambda: them[2].image.topics["t"].partitions[0].leader in (1, 2))
        assert not any(each.done() for each in asking)
        for each in asking:
            each.cancel()

    scenario(play)


def test_a_config_that_cannot_be_read_prevents_no_election(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """RE-10: as Kafka has it, such a topic has no settings of its own; and it has a leader."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(1, 2, 3))
        await them.store.commit([Set(layout.topic_config_path("t"), b"by hand")])
        await them[1].die()
        await until(lambda: all(each.hosted[T0].leader == 2 for each in alive(them)))
        assert "topic t falls back to the broker's configs: /config/topics/t cannot" in caplog.text

    scenario(play)


def test_re_13_who_shuts_down_is_elected_nowhere_though_defaults_have_changed() -> None:
    """What was asked of a controller is not forgotten with its settings."""

    async def play(them: Brokers) -> None:
        await made(them, assigned(2, 3))
        assert await them[1].runner.controlled_shutdown(2, them[2].epochs[-1]) == []
        changed = them[1].config.with_dynamic({}, {"unclean.leader.election.enable": "true"})
        them[1].runner.configure(changed)
        await made(them, assigned(2, 3, name="u"))
        assert them[1].image.topics["u"].partitions[0].leader == 3

    scenario(play)
