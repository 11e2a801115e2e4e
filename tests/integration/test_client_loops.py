"""Our clients on another event loop than their own, and on none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from barnabas.client import Admin, Consumer, Producer, TopicPartition
from barnabas.client.errors import ClientClosed

if TYPE_CHECKING:
    import barnabas

NAME = TopicPartition("loops", 0)
USES: list[Callable[[Consumer], Awaitable[object]]] = [
    lambda consumer: consumer.poll(60_000),
    lambda consumer: consumer.end_offsets([NAME]),
    lambda consumer: consumer.partitions_for("loops"),
    lambda consumer: consumer.commit_sync({NAME: 0}),
    lambda consumer: consumer.close(),
]


def test_another_loop_is_refused_in_words(broker: barnabas.Broker) -> None:
    broker.topic("loops", partitions=1)

    async def started() -> Consumer:
        consumer = Consumer(broker.bootstrap_servers, group_id="loops")
        await consumer.start()
        consumer.subscribe(["loops"])
        return consumer

    async def use(how: Callable[[Consumer], Awaitable[object]], consumer: Consumer) -> None:
        await asyncio.wait_for(how(consumer), 30)

    with asyncio.Runner() as its_own:
        consumer = its_own.run(started())
        for each in USES:
            with pytest.raises(ClientClosed, match="started on another event loop"):
                asyncio.run(use(each, consumer))
        its_own.run(consumer.close())


@pytest.mark.parametrize("client", [Admin, Consumer, Producer])
def test_no_loop_at_all_is_refused_in_words(
    broker: barnabas.Broker, client: type[Admin | Consumer | Producer]
) -> None:
    """As under trio, which runs coroutines without an asyncio loop."""
    start = client(broker.bootstrap_servers).start()
    with pytest.raises(ClientClosed, match="no asyncio event loop runs here"):
        start.send(None)
