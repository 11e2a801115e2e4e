"""Controllers over a real ZooKeeper: deaths, sessions that end, a server that is away a while."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from barnabas.cluster.zookeeper import ZooKeeperStore
from barnabas.controller.topics import NewTopic
from barnabas.errors import NotController
from tests.kit.broker.brokers import T0, SomeBroker, delete_topic
from tests.kit.metadata_stores import ZooKeeperStores
from tests.kit.processes.zookeeper_process import ZooKeeperProcess
from tests.kit.waiting import until

pytestmark = pytest.mark.secured

WELL_WITHIN_S = 60.0


class Three:
    """Three brokers with a session each, below a chroot of the test's own."""

    def __init__(self, zookeeper: ZooKeeperProcess, chroot: str) -> None:
        self.stores = ZooKeeperStores(f"{zookeeper.connect}/{chroot}")
        self.all: dict[int, SomeBroker] = {}

    def __getitem__(self, broker_id: int) -> SomeBroker:
        return self.all[broker_id]

    async def start(self, broker_id: int) -> SomeBroker:
        store = await self.stores.open()
        assert isinstance(store, ZooKeeperStore)
        broker = self.all[broker_id] = SomeBroker(store, broker_id)
        await broker.start()
        return broker

    async def all_know(self, *broker_ids: int) -> None:
        await until(
            lambda: all(set(self[n].image.brokers) == set(broker_ids) for n in broker_ids),
            WELL_WITHIN_S,
        )


def scenario(
    zookeeper: ZooKeeperProcess, chroot: str, play: Callable[[Three], Awaitable[None]]
) -> None:
    async def whole() -> None:
        three = Three(zookeeper, chroot)
        try:
            for broker_id in (1, 2, 3):
                await three.start(broker_id)
            await three.all_know(1, 2, 3)
            await play(three)
        finally:
            for broker in three.all.values():
                await broker.die()
            await three.stores.close()

    asyncio.run(whole())


def test_brokers_and_controllers_die_and_come_back(zookeeper: ZooKeeperProcess) -> None:
    """ZK-2, ZK-3, ZK-4, RE-10: 300 partitions have leaders again within moments."""

    async def play(three: Three) -> None:
        await three[1].runner.create_topic(NewTopic("t", 300, 3))
        await until(lambda: all(len(three[n].hosted) == 300 for n in (1, 2, 3)), WELL_WITHIN_S)
        await three[3].die()
        await three.all_know(1, 2)
        partitions = three[2].image.topics["t"].partitions.values()
        assert {each.leader for each in partitions} == {1, 2}
        await three[1].die()
        await three.all_know(2)
        assert three[2].runner.is_active
        assert three[2].image.controller_epoch == 2
        partitions = three[2].image.topics["t"].partitions.values()
        assert {(each.leader, each.isr) for each in partitions} == {(2, (2,))}
        for broker_id in (3, 1):
            back = await three.start(broker_id)
            await until(lambda back=back: len(back.hosted) == 300, WELL_WITHIN_S)  # type: ignore[misc]
        (topic,) = await three[1].runner.auto_create_topics([NewTopic("u", 1, 3)])
        assert topic == three[1].image.topics["u"]
        await delete_topic(three[2].runner, "t")
        await until(lambda: all("t" not in three[n].image.topics for n in (1, 2, 3)))
        assert not [name for name in three[1].hosted if name.topic == "t"]

    scenario(zookeeper, "deaths", play)


def test_sessions_that_end_are_followed_by_others(zookeeper: ZooKeeperProcess) -> None:
    """ZK-5: a controller whose session is over decides nothing more in it, and registers again."""

    async def play(three: Three) -> None:
        await three[1].runner.create_topic(NewTopic("t", assignment={0: [1, 2, 3]}))
        for broker_id in (1, 2, 3):
            broker = three[broker_id]
            was_active = broker.runner.is_active
            before = len(broker.epochs)
            await three.stores.expire(broker.store)
            await until(lambda b=broker, n=before: len(b.epochs) > n, WELL_WITHIN_S)  # type: ignore[misc]
            await three.all_know(1, 2, 3)
            if broker_id == 1:
                assert was_active

        def agreed() -> bool:
            active = [each for each in three.all.values() if each.runner.is_active]
            try:
                epochs = {each.runner.image.controller_epoch for each in active}
            except NotController:  # it is elected, but has not loaded the state
                return False
            images = [each.image for each in three.all.values()]
            leader = images[0].topics["t"].partitions[0].leader
            known = {each.controller_epoch for each in images}
            return len(active) == 1 and known == epochs and leader > 0

        await until(agreed, WELL_WITHIN_S)
        (controller,) = [each for each in three.all.values() if each.runner.is_active]
        assert controller.image.controller_epoch >= 2
        partition = controller.runner.image.topics["t"].partitions[0]
        assert partition.leader in partition.isr
        epochs = {n: each.epoch for n, each in controller.runner.image.brokers.items()}
        assert epochs == {n: three[n].epochs[-1] for n in (1, 2, 3)}

    scenario(zookeeper, "sessions", play)


def test_a_server_that_was_killed_is_waited_for(zookeeper: ZooKeeperProcess) -> None:
    """ZK-5: the controller lives as long as its session; unanswered requests are sent again."""

    async def play(three: Three) -> None:
        await three[1].runner.create_topic(NewTopic("t", assignment={0: [1, 2, 3]}))
        zookeeper.kill()
        await asyncio.sleep(0.5)
        await asyncio.get_running_loop().run_in_executor(None, zookeeper.start)
        async with asyncio.timeout(WELL_WITHIN_S):
            while "u" not in three[2].image.topics:
                for broker in three.all.values():
                    with suppress(NotController):
                        await broker.runner.create_topics([NewTopic("u", 1, 3)])
                await asyncio.sleep(0.05)
        await three.all_know(1, 2, 3)
        assert sum(each.runner.is_active for each in three.all.values()) == 1
        assert all(T0 in each.hosted for each in three.all.values())

    scenario(zookeeper, "restart", play)
