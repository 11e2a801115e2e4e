"""Our client when brokers are away, mute, old, restarted or killed."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import barnabas
from barnabas.client.admin.admin import Admin, NewTopic
from barnabas.client.channel import BrokerAddress, Channel, system_seams
from barnabas.client.config import ClientConfig
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.errors import ConnectionLost, DeliveryTimedOut, NoAnswer, NoBrokersAvailable
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.producer import Producer
from barnabas.client.sync.producer import SyncAdmin, SyncProducer
from barnabas.errors import BarnabasError, ConfigError, CorruptData, UnsupportedVersion
from barnabas.protocol.api import API_VERSIONS, METADATA, PRODUCE
from barnabas.protocol.frame import decode_request_header, encode_response
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.types import TopicPartition
from tests.kit.processes.broker_process import broker_process, free_port

if TYPE_CHECKING:
    from barnabas.testing.embedded.broker import Broker

pytestmark = pytest.mark.secured

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def server(serve: Serve) -> AsyncIterator[str]:
    """Something that listens and is no broker of ours; its `host:port`."""

    async def then_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError):
            await serve(reader, writer)
        writer.close()

    running = await asyncio.start_server(then_close, "127.0.0.1", 0)
    host, port = running.sockets[0].getsockname()
    try:
        yield f"{host}:{port}"
    finally:
        running.close()
        await running.wait_closed()


async def connect(servers: str, **options: int) -> None:
    async with Admin(servers, **options):  # type: ignore[arg-type]
        pass


async def problem_with(servers: str, **options: int) -> BarnabasError:
    with pytest.raises(BarnabasError) as raised:
        await connect(servers, **options)
    return raised.value


def test_servers_that_are_not_there_are_named_at_once() -> None:
    """PR-9: every server that was tried is named."""
    ports = free_port(), free_port()
    servers = ",".join(f"127.0.0.1:{port}" for port in ports)
    began = time.monotonic()
    with pytest.raises(NoBrokersAvailable) as raised:
        SyncAdmin(servers)
    assert time.monotonic() - began < 25, "not for as long as a request may take"
    for port in ports:
        assert f"127.0.0.1:{port}: connection refused" in str(raised.value)


def test_a_broker_that_is_also_a_server_is_named_once() -> None:
    with barnabas.Broker() as broker:
        servers = broker.bootstrap_servers
        admin = SyncAdmin(servers, default_api_timeout_ms=100)
    with pytest.raises(NoBrokersAvailable) as raised:
        admin.list_topics()
    admin.close()
    assert str(raised.value).count(servers) == 1, str(raised.value)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "no..name", "x" * 64])
def test_a_host_that_does_not_exist_is_named(host: str) -> None:
    with pytest.raises(NoBrokersAvailable, match=re.escape(f"{host}:9092")):
        SyncAdmin(f"{host}:9092")


@pytest.mark.parametrize("servers", ["", "localhost", "localhost:", ":9092", "h:0", "h:x,h:1"])
def test_an_address_that_is_none_is_refused(servers: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        SyncAdmin(servers)


def test_one_reachable_server_of_the_list_is_enough(broker: Broker) -> None:
    """PR-9."""
    servers = f"127.0.0.1:{free_port()},{broker.bootstrap_servers},127.0.0.1:{free_port()}"
    with SyncProducer(servers) as producer:
        assert producer.send("one-server", b"v").result(120).offset == 0


def test_a_mute_server_is_given_up_after_the_request_timeout() -> None:
    """PR-3: request.timeout.ms."""

    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def work() -> BarnabasError:
        async with server(mute) as address:
            return await problem_with(address, request_timeout_ms=200)

    problem = asyncio.run(work())
    assert isinstance(problem, NoBrokersAvailable)
    assert "did not answer ApiVersions" in str(problem)


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x04\x00\x00\x00\x63", b"\x00\x00\x00\x00"],
)
def test_a_server_of_another_kind_is_recognized(answer: bytes) -> None:
    """UX-4: bytes that are no answer of ours end in one error, not in a hang."""

    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(10)
        writer.write(answer)
        await reader.read()

    async def work() -> BarnabasError:
        async with server(other) as address:
            return await problem_with(address, request_timeout_ms=3_000)

    assert isinstance(asyncio.run(work()), NoBrokersAvailable | CorruptData)


def test_a_server_that_hangs_up_is_an_error() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)

    async def work() -> BarnabasError:
        async with server(hang_up) as address:
            return await problem_with(address)

    assert "closed the connection" in str(asyncio.run(work()))


@pytest.mark.parametrize("newest", [0, 2])
def test_an_older_broker_is_asked_again_in_its_version(newest: int) -> None:
    """KIP-511: an unknown ApiVersions version is answered in version 0, with what there is."""
    asked: list[int] = []

    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            size = int.from_bytes(await reader.readexactly(4), "big")
            header = decode_request_header(memoryview(await reader.readexactly(size)))
            asked.append(header.api_version)
            known = header.api_version <= newest
            offered = [ApiVersion(api_key=API_VERSIONS.key, min_version=0, max_version=newest)]
            if known:
                offered.append(ApiVersion(api_key=METADATA.key, min_version=0, max_version=5))
            response = ApiVersionsResponse(error_code=0 if known else 35, api_keys=offered)
            version = header.api_version if known else 0
            parts = encode_response(API_VERSIONS, version, header.correlation_id, response)
            writer.write(b"".join(map(bytes, parts)))  # type: ignore[arg-type]

    async def work() -> None:
        async with server(old) as address:
            host, _, port = address.partition(":")
            channel = Channel(BrokerAddress(-1, host, int(port)), ClientConfig(), system_seams())
            await channel.open()
            assert channel.is_open
            assert channel.version(METADATA) == 5
            assert channel.version(METADATA, at_most=3) == 3
            with pytest.raises(UnsupportedVersion, match="supports Produce versions"):
                channel.version(PRODUCE)
            channel.close()

    asyncio.run(work())
    assert asked == [3, newest]


def test_what_is_in_flight_fails_when_the_connection_ends() -> None:
    """The outcome is unknown, and every pending request hears of it."""
    closing: list[asyncio.StreamWriter] = []

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        header = decode_request_header(memoryview(await reader.readexactly(size)))
        response = ApiVersionsResponse(
            api_keys=[ApiVersion(api_key=METADATA.key, min_version=0, max_version=12)]
        )
        parts = encode_response(API_VERSIONS, 3, header.correlation_id, response)
        writer.write(b"".join(map(bytes, parts)))  # type: ignore[arg-type]
        await reader.readexactly(20)
        closing.append(writer)

    async def work() -> list[BaseException | object]:
        async with server(half) as address:
            host, _, port = address.partition(":")
            channel = Channel(BrokerAddress(-1, host, int(port)), ClientConfig(), system_seams())
            await channel.open()
            answers = [channel.send(METADATA, MetadataRequest(), 12) for _ in range(3)]
            return await asyncio.gather(*answers, return_exceptions=True)

    failures = asyncio.run(work())
    assert [type(failure) for failure in failures] == [ConnectionLost] * 3


def test_a_request_without_an_answer_ends_its_connection() -> None:
    async def work() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            host, port = listening.getsockname()
            config = ClientConfig(request_timeout_ms=100)
            channel = Channel(BrokerAddress(7, host, port), config, system_seams())
            with pytest.raises(NoAnswer, match=r"\(broker 7\) did not answer ApiVersions in"):
                await channel.open()
            assert not channel.is_open

    asyncio.run(work())


def test_clients_come_back_to_a_broker_that_was_restarted(tmp_path: Path) -> None:
    """PR-9: a lost connection is made again, and positions stay."""

    async def work() -> None:
        with broker_process(tmp_path) as broker:
            async with (
                Producer(broker.bootstrap_servers) as producer,
                Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer,
            ):
                await (await producer.send("restarted", b"before"))
                consumer.assign([TopicPartition("restarted", 0)])
                assert [record.value for record in await consumer.poll(60_000)] == [b"before"]
                assert broker.stop() == 0
                waiting = await producer.send("restarted", b"meanwhile")
                assert await consumer.poll(300) == []
                assert not waiting.done()
                broker.start()
                assert (await waiting).offset == 1
                assert [record.value for record in await consumer.poll(60_000)] == [b"meanwhile"]

    asyncio.run(work())


def test_a_broker_that_stays_away_ends_in_delivery_timeout(tmp_path: Path) -> None:
    """PR-3: delivery.timeout.ms bounds the whole; the error says what and where."""

    async def work() -> None:
        with broker_process(tmp_path) as broker:
            producer = Producer(
                broker.bootstrap_servers, delivery_timeout_ms=700, request_timeout_ms=700
            )
            await producer.start()
            is_there = False
            while not is_there:  # the first one has to have its topic made
                with contextlib.suppress(DeliveryTimedOut):
                    await (await producer.send("gone", b"before"))
                    is_there = True
            broker.kill()
            delivery = await producer.send("gone", b"never")
            with pytest.raises(DeliveryTimedOut, match="gone-0"):
                await delivery
            await producer.close()

    asyncio.run(work())


class Forgetful:
    """Stands before a broker and passes everything on, but for one answer in so many.

    That answer is kept back and the connection closed: the broker has the batch, the client cannot
    know. Handshakes and metadata are answered always.
    """

    def __init__(self, broker_port: int, every: int) -> None:
        self._broker_port = broker_port
        self._every = every
        self._produced = 0
        self.forgotten = 0

    async def serve_until_lost(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(EOFError, OSError):
            await self._serve(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream = await asyncio.open_connection("127.0.0.1", self._broker_port)
        keys: list[int] = []
        forward = asyncio.create_task(self._requests(reader, upstream[1], keys))
        try:
            while True:
                size = await upstream[0].readexactly(4)
                frame = await upstream[0].readexactly(int.from_bytes(size, "big"))
                if keys.pop(0) == PRODUCE.key:
                    self._produced += 1
                    if self._produced % self._every == 0:
                        self.forgotten += 1
                        return
                writer.write(size + frame)
        finally:
            forward.cancel()
            upstream[1].close()
            writer.close()

    async def _requests(
        self, reader: asyncio.StreamReader, upstream: asyncio.StreamWriter, keys: list[int]
    ) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                size = await reader.readexactly(4)
                frame = await reader.readexactly(int.from_bytes(size, "big"))
                keys.append(int.from_bytes(frame[:2], "big"))
                upstream.write(size + frame)
        upstream.close()


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_lost_answer_is_a_duplicate_only_without_idempotence(idempotent: bool) -> None:
    """PR-5, PR-6, DL-1: sent again, and recognized by its sequence; several in flight."""

    async def work(broker_port: int, proxy_port: int) -> list[int]:
        forgetful = Forgetful(broker_port, every=7)
        proxy = await asyncio.start_server(forgetful.serve_until_lost, "127.0.0.1", proxy_port)
        address = f"127.0.0.1:{proxy_port}"
        async with Producer(
            address, batch_size=200, enable_idempotence=idempotent, retry_backoff_ms=1,
            reconnect_backoff_ms=1,
        ) as producer:  # fmt: skip
            sent = [await producer.send("lost", b"%d" % n) for n in range(1_000)]
            await producer.flush()
            offsets = [delivery.result().offset for delivery in sent]
        assert forgetful.forgotten > 3
        stored = []
        async with Consumer(address, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("lost", 0)])
            (end,) = (await consumer.end_offsets([TopicPartition("lost", 0)])).values()
            while len(stored) < end:
                stored += [int(record.value or b"-1") for record in await consumer.poll(60_000)]
        proxy.close()
        for number, offset in enumerate(offsets):
            assert stored[offset] == number
        return stored

    proxy_port = free_port()
    config = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{proxy_port}"}
    with barnabas.Broker(config=config) as broker:
        stored = asyncio.run(work(broker.port, proxy_port))
    assert sorted(set(stored)) == list(range(1_000))
    if idempotent:
        assert stored == list(range(1_000))
    else:
        assert len(stored) > 1_000


@pytest.mark.timeout(600)
def test_acknowledged_records_are_there_once_and_in_order_after_kills(tmp_path: Path) -> None:
    """PR-5, PR-6, DL-1: `kill -9` under our idempotent producer, several requests in flight."""
    partitions = 2

    async def send(producer: Producer, deliveries: list[Delivery], stop: asyncio.Event) -> None:
        while not stop.is_set():
            number = len(deliveries)
            deliveries.append(
                await producer.send("killed", b"%d" % number, partition=number % partitions)
            )
            if number % 20 == 0:
                await asyncio.sleep(0.001)

    async def work() -> None:
        with broker_process(tmp_path) as broker:
            async with Admin(broker.bootstrap_servers) as admin:
                await admin.create_topics([NewTopic("killed", partitions)])
            deliveries: list[Delivery] = []
            stop = asyncio.Event()
            async with Producer(broker.bootstrap_servers, batch_size=500) as producer:
                sending = asyncio.create_task(send(producer, deliveries, stop))
                for _ in range(6):
                    await asyncio.sleep(0.3)
                    broker.kill()
                    await asyncio.to_thread(broker.start)
                stop.set()
                await sending
            async with Consumer(broker.bootstrap_servers) as consumer:
                names = [TopicPartition("killed", n) for n in range(partitions)]
                consumer.assign(names)
                await consumer.seek_to_beginning()
                stored: list[list[int]] = [[] for _ in range(partitions)]
                ends = await consumer.end_offsets(names)
                while sum(map(len, stored)) < sum(ends.values()):
                    for record in await consumer.poll(60_000):
                        assert record.offset == len(stored[record.partition])
                        stored[record.partition].append(int(record.value or b"-1"))
            for number, delivery in enumerate(deliveries):
                metadata = delivery.result()
                assert stored[metadata.partition][metadata.offset] == number
            assert sum(map(len, stored)) == len(deliveries) > 100
            assert stored == [sorted(each) for each in stored]

    asyncio.run(work())
