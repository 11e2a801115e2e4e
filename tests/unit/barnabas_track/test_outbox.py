"""BT-1: an id is written once, as long as it is remembered, however often it is sent."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

import barnabas
from barnabas.client import Producer
from barnabas.client.producer.batch import ProducerRecord
from barnabas_track.outbox import NotStored, Outbox, Outgoing


def outgoing(*ids: str) -> list[Outgoing]:
    return [Outgoing(each, ProducerRecord("events", each.encode())) for each in ids]


def test_an_id_is_written_once_while_it_is_remembered() -> None:
    async def run(servers: str) -> None:
        async with Producer(servers) as producer:
            outbox = Outbox(producer, most_ids=2)
            assert await outbox.store(outgoing("a", "b", "a")) == 1
            assert await outbox.store(outgoing("a", "b")) == 2
            assert await outbox.store(outgoing("c")) == 0
            assert await outbox.store(outgoing("a")) == 0  # the oldest one was forgotten
            both = await asyncio.gather(outbox.store(outgoing("d")), outbox.store(outgoing("d")))
            assert sorted(both) == [0, 1]
            assert producer.statistics()["records_unfinished"] == 0

    with barnabas.Broker() as broker:
        asyncio.run(run(broker.bootstrap_servers))


def test_a_second_try_waits_for_the_first_one() -> None:
    """The first one's record is in the producer when its request is given up."""

    async def run(servers: str) -> None:
        async with Producer(servers, linger_ms=400) as producer:
            await (await producer.send("events", b"first"))  # so that the topic is known
            outbox = Outbox(producer, wait_s=0.05)
            with pytest.raises(NotStored, match="no acknowledgement within"):
                await outbox.store(outgoing("a"))
            assert outbox.trouble
            known = 0
            while not known:
                with contextlib.suppress(NotStored):
                    known = await outbox.store(outgoing("a"))
            assert outbox.trouble == ""
            place = await producer.send("events", b"next")
            assert (await place).offset == 2

    with barnabas.Broker() as broker:
        asyncio.run(run(broker.bootstrap_servers))
