"""AS-6: our consumer and confluent-kafka's in one group, both cooperative (KIP-429)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import barnabas
from barnabas.client import Admin, Consumer, NewTopic, RebalanceListener, TopicPartition

pytestmark = [pytest.mark.foreign, pytest.mark.timeout(180)]

PATIENCE_S = 120.0
TOPIC = GROUP = "mixed"
OPTIONS: dict[str, Any] = {
    "group.id": GROUP,
    "partition.assignment.strategy": "cooperative-sticky",
    "auto.offset.reset": "earliest",
    "heartbeat.interval.ms": 100,
    "session.timeout.ms": 10_000,
}


class Foreign:
    """confluent-kafka's consumer in a thread, and what came and went there."""

    def __init__(self, servers: str) -> None:
        self.events: list[tuple[str, set[int]]] = []
        self.owned: set[int] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(servers,))
        self._thread.start()

    def _run(self, servers: str) -> None:
        from confluent_kafka import Consumer as ForeignConsumer

        consumer = ForeignConsumer({"bootstrap.servers": servers, "log_level": 0, **OPTIONS})

        def assigned(_: Any, partitions: Any) -> None:
            consumer.incremental_assign(partitions)
            self.owned |= {each.partition for each in partitions}
            if partitions:
                self.events.append(("assigned", {each.partition for each in partitions}))

        def revoked(_: Any, partitions: Any) -> None:
            consumer.incremental_unassign(partitions)
            self.owned -= {each.partition for each in partitions}
            self.events.append(("revoked", {each.partition for each in partitions}))

        consumer.subscribe([TOPIC], on_assign=assigned, on_revoke=revoked)
        while not self._stopping.is_set():
            consumer.poll(0.05)
        consumer.close()

    def leave(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_S)


class Recorder(RebalanceListener):
    def __init__(self) -> None:
        self.events: list[tuple[str, set[int]]] = []

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.events.append(("revoked", {each.partition for each in partitions}))

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        if partitions:
            self.events.append(("assigned", {each.partition for each in partitions}))


@pytest.fixture
def servers() -> Iterator[str]:
    with barnabas.Broker(config={"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker.bootstrap_servers


@pytest.mark.parametrize("leader", ["ours", "theirs"])
def test_as_6_a_group_with_a_foreign_client_moves_only_what_must(servers: str, leader: str) -> None:
    """Whichever of the two was first, and leads the group: three of six partitions move, and come
    back when their new owner leaves."""
    listener = Recorder()
    partitions = set(range(6))

    async def owns(consumer: Consumer, count: int, foreign: Foreign | None, theirs: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(consumer.assignment()) != count or (
                foreign is not None and len(foreign.owned) != theirs
            ):
                await consumer.poll(50)

    async def run() -> None:
        async with Admin(servers) as admin:
            await admin.create_topics([NewTopic(TOPIC, 6)])
        foreign: Foreign | None = None
        try:
            if leader == "theirs":
                foreign = Foreign(servers)
                async with asyncio.timeout(PATIENCE_S):
                    while foreign.owned != partitions:
                        await asyncio.sleep(0.05)
            async with Consumer(servers, **OPTIONS) as consumer:
                consumer.subscribe([TOPIC], listener)
                if foreign is None:
                    await owns(consumer, 6, None, 0)
                    foreign = Foreign(servers)
                await owns(consumer, 3, foreign, 3)
                ours = {each.partition for each in consumer.assignment()}
                assert ours == partitions - foreign.owned
                first, second = (
                    (listener.events, foreign.events)
                    if leader == "ours"
                    else (foreign.events, listener.events)
                )
                moved = foreign.owned if leader == "ours" else ours
                assert first == [("assigned", partitions), ("revoked", set(moved))]
                assert second == [("assigned", set(moved))]
                foreign.leave()
                await owns(consumer, 6, None, 0)
                assert listener.events[-1] == ("assigned", partitions - ours), "no more than that"
        finally:
            if foreign is not None:
                foreign.leave()

    asyncio.run(run())
