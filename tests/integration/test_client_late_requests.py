"""A transactional producer's requests that were given up, and arrive in its next transaction.

The first request of one kind is held on its way, and its connection lost for the producer; when the
test says so the broker gets it, behind what the producer has asked since.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import uuid4

import pytest

import barnabas
from barnabas.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from barnabas.errors import ProducerFenced
from barnabas.protocol.api import (
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
    Api,
)
from tests.kit.processes.broker_process import free_port

pytestmark = pytest.mark.secured

PATIENCE_S = 120.0


class Detaining:
    """Forwards whole requests, but for the first of one kind."""

    def __init__(self, broker_port: int, api: Api) -> None:
        self._broker_port = broker_port
        self._key = api.key
        self._upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._frame = b""
        self.before_next_epoch: Callable[[], Awaitable[None]] | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await asyncio.open_connection("127.0.0.1", self._broker_port)
        back = asyncio.create_task(self._answers(upstream[0], writer))
        try:
            while True:
                frame = await _frame(reader)
                key = int.from_bytes(frame[4:6])
                if self._upstream is None and key == self._key:
                    back.cancel()
                    self._frame, self._upstream = frame, upstream
                    return
                if self._upstream is not None and key == INIT_PRODUCER_ID.key:
                    happens, self.before_next_epoch = self.before_next_epoch, None
                    if happens is not None:
                        await happens()
                upstream[1].write(frame)
        except (EOFError, OSError):
            pass  # the client has gone
        finally:
            back.cancel()
            writer.close()
            if self._upstream is not upstream:
                upstream[1].close()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                writer.write(await reader.read(1 << 16) or _gone())

    async def let_go(self) -> None:
        """The broker gets it, and has answered it when this returns."""
        assert self._upstream is not None
        reader, writer = self._upstream
        writer.write(self._frame)
        async with asyncio.timeout(PATIENCE_S):
            await _frame(reader)
        writer.close()


def _gone() -> bytes:
    raise EOFError


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size))


@contextlib.asynccontextmanager
async def detaining(api: Api) -> AsyncIterator[tuple[Detaining, str, str]]:
    """A broker behind a wire that holds a request; its address, and the name of a new topic."""
    port, topic = free_port(), f"late-{uuid4().hex[:8]}"
    config = {
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "group.initial.rebalance.delay.ms": "0",
    }
    with barnabas.Broker(config=config) as broker:
        wire = Detaining(broker.port, api)
        proxy = await asyncio.start_server(wire.serve, "127.0.0.1", port)
        servers = f"127.0.0.1:{port}"
        async with Admin(servers) as admin:
            await admin.create_topics([NewTopic(topic, 1)])
        try:
            yield wire, servers, topic
        finally:
            proxy.close()


async def read(servers: str, topic: str) -> list[bytes | None]:
    """What is committed, and in front of the last stable offset."""
    name = TopicPartition(topic, 0)
    values = []
    async with Consumer(
        servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([name])
        (end,) = (await consumer.end_offsets([name])).values()
        async with asyncio.timeout(PATIENCE_S):
            while await consumer.position(name) < end:
                values += [record.value for record in await consumer.poll(100)]
    return values


async def epoch_of(servers: str, transactional_id: str) -> int:
    async with Admin(servers) as admin:
        return (await admin.describe_transactions([transactional_id]))[
            transactional_id
        ].producer_epoch


def test_the_end_of_one_transaction_does_not_end_the_next() -> None:
    """PR-7: or a part of that would be committed that is aborted afterwards."""

    async def run() -> None:
        async with detaining(END_TXN) as (wire, servers, topic):
            async with Producer(servers, transactional_id=topic) as producer:
                await producer.init_transactions()
                producer.begin_transaction()
                await producer.send(topic, b"first")
                await producer.commit_transaction()
                producer.begin_transaction()
                await producer.send(topic, b"second")
                await producer.flush()
                await wire.let_go()
                await producer.abort_transaction()
                producer.begin_transaction()
                await producer.send(topic, b"third")
                await producer.commit_transaction()
            assert await read(servers, topic) == [b"first", b"third"]
            assert await epoch_of(servers, topic) == 1, "raised once: all else was answered"

    asyncio.run(run())


def test_offsets_of_one_transaction_are_not_those_of_the_next() -> None:
    """PR-7, KIP-447"""

    async def run() -> None:
        async with detaining(TXN_OFFSET_COMMIT) as (wire, servers, topic):
            name = TopicPartition(topic, 0)
            async with Producer(servers, transactional_id=topic) as producer:
                await producer.init_transactions()
                for number in (5, 9):
                    producer.begin_transaction()
                    await producer.send_offsets_to_transaction({name: number}, "group")
                    if number == 9:
                        await wire.let_go()
                    await producer.commit_transaction()
            async with Admin(servers) as admin:
                found = await admin.list_group_offsets("group", [name], require_stable=True)
            assert found[name].offset == 9

    asyncio.run(run())


def test_a_transaction_does_not_begin_again_after_its_end() -> None:
    """PR-7: or the coordinator would wait for its end, and fence the producer at the timeout."""

    async def run() -> None:
        async with detaining(ADD_PARTITIONS_TO_TXN) as (wire, servers, topic):
            async with Producer(servers, transactional_id=topic) as producer:
                await producer.init_transactions()
                producer.begin_transaction()
                await producer.send(topic, b"first")
                await producer.commit_transaction()
                await wire.let_go()
                async with Admin(servers) as admin:
                    described = (await admin.describe_transactions([topic]))[topic]
                assert described.state != "Ongoing"
            assert await read(servers, topic) == [b"first"]

    asyncio.run(run())


def test_a_producer_fenced_after_its_commit_gets_the_error_afterwards() -> None:
    """PR-7: a commit that was done is not called refused."""

    async def run() -> None:
        async with detaining(END_TXN) as (wire, servers, topic):

            async def another_begins() -> None:
                async with Producer(servers, transactional_id=topic) as another:
                    await another.init_transactions()

            async with Producer(servers, transactional_id=topic) as producer:
                await producer.init_transactions()
                producer.begin_transaction()
                await producer.send(topic, b"first")
                wire.before_next_epoch = another_begins
                await producer.commit_transaction()
                with pytest.raises(ProducerFenced):
                    producer.begin_transaction()
                await wire.let_go()
            assert await read(servers, topic) == [b"first"]

    asyncio.run(run())
