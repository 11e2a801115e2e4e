"""Brokers that follow each other: real servers on one loop, under orders from the test instead
of a controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from barnabas.broker.partitions.replica import Replica
from barnabas.broker.server import Server
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState, UpdateMetadata
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.image import BrokerImage, Endpoint, PartitionImage, TopicImage
from barnabas.config import BrokerConfig
from barnabas.protocol.api import FETCH
from barnabas.types import TopicPartition
from tests.kit.raw_client import batch
from tests.kit.waiting import until

TOPIC_ID = bytes(15) + b"\x07"
CONTROLLER_EPOCH = 1_000_000  # above that of the controllers which the servers have themselves
WITHIN_S = 60
NAME = TopicPartition("t", 0)


class Site:
    """A broker, and what it copies."""

    def __init__(self, server: Server) -> None:
        self.server = server
        assert server.parts.partitions.others is not None
        self.fetchers = server.parts.partitions.others.fetchers
        self._port = server.port

    @property
    def broker_id(self) -> int:
        return self.server.broker_id

    @property
    def image(self) -> BrokerImage:
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", self._port, "PLAINTEXT")
        return BrokerImage(self.broker_id, (endpoint,), None, epoch=1)

    def reached_by(self, port: int) -> None:
        """The other brokers connect to this port from now on."""
        self._port = port

    def replica(self, name: TopicPartition) -> Replica:
        return self.server.node.replicas.replica_of(name)

    def hears(self, topic: TopicImage, *sites: Site) -> None:
        """What the controller says: who leads what, and where the brokers are."""
        control = self.server.node.control
        states = tuple(
            PartitionState(TopicPartition(topic.name, index), topic.topic_id, state, {}, False)
            for index, state in topic.partitions.items()
            if self.broker_id in state.replicas
        )
        codes = control.carry_out(LeaderAndIsr(0, CONTROLLER_EPOCH, states))
        assert not any(codes.values()), codes
        brokers = tuple(site.image for site in sites)
        control.carry_out(UpdateMetadata(0, CONTROLLER_EPOCH, "a-cluster", brokers, (topic,)))

    def append(self, name: TopicPartition, *values: bytes) -> None:
        """As the leader."""
        replica = self.replica(name)
        replica.append(memoryview(bytearray(batch(*values))), self.server.clock.wall_ms())
        self.server.node.replicas.write_staged()

    def end(self, name: TopicPartition) -> int:
        return self.replica(name).log.log_end_offset

    def files(self, name: TopicPartition) -> dict[str, bytes]:
        """The log's segments as they are on disk."""
        directory = self.replica(name).log.directory
        return {path.name: path.read_bytes() for path in sorted(directory.glob("*.log"))}

    async def stop(self) -> None:
        await self.fetchers.stop()
        await self.server.stop()


class Relay:
    """Stands before a broker, and counts what followers ask it; in an `async with`."""

    def __init__(self, site: Site) -> None:
        self._port = site.server.port
        self._server: asyncio.Server | None = None
        self._pumps: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []
        self.connections = 0
        self.holds: int | None = None
        """The key of an API of which the next request is not passed on, and stays unanswered."""
        self.is_holding = False
        self.requests: list[int] = []
        """The sizes of all Fetch requests, in bytes."""

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def __aenter__(self) -> Relay:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for pump in self._pumps:
            pump.cancel()

    def drop(self) -> None:
        """Reset all connections."""
        writers, self._writers = self._writers, []
        for writer in writers:
            writer.transport.abort()

    async def quiet(self) -> None:
        """Return when two requests in a row were about nothing."""
        await until(lambda: len(self.requests) >= 2 and max(self.requests[-2:]) <= 100)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._port)
        for pump in (self._count(reader, to_writer), _copy(to_reader, writer)):
            self._pumps.append(asyncio.create_task(pump))

    async def _count(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readexactly(4)
                frame = await reader.readexactly(int.from_bytes(head, "big"))
                if int.from_bytes(frame[:2], "big") == FETCH.key:
                    self.requests.append(len(frame))
                if int.from_bytes(frame[:2], "big") == self.holds:
                    self.holds, self.is_holding = None, True
                    continue
                writer.write(head + frame)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 20):
        writer.write(data)
    writer.close()


@asynccontextmanager
async def running(
    directory: Path, broker_id: int, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Site]:
    """A broker on a free port, unless the settings name another."""
    config = {
        "broker.id": str(broker_id),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(directory / f"broker-{broker_id}"),
        "replica.fetch.backoff.ms": "100",
        **(settings or {}),
    }
    server = Server(BrokerConfig(config), store=EmbeddedStore())
    await server.start()
    site = Site(server)
    try:
        yield site
    finally:
        await site.stop()


@asynccontextmanager
async def pair(
    directory: Path, settings: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[Site, Site]]:
    """Broker 1, which is to lead, and broker 2, which follows, with these settings."""
    async with running(directory, 1) as one, running(directory, 2, settings) as two:
        yield one, two


@asynccontextmanager
async def relayed(
    directory: Path, settings: Mapping[str, str] | None = None
) -> AsyncIterator[tuple[Site, Site, Relay]]:
    """As `pair`, but that others reach broker 1 by a relay."""
    async with pair(directory, settings) as (one, two), Relay(one) as relay:
        one.reached_by(relay.port)
        yield one, two, relay


def led(leader: int, epoch: int, *followers: int, isr: tuple[int, ...] = ()) -> PartitionImage:
    """A partition's state: the leader comes first among its replicas."""
    return PartitionImage(leader, epoch, isr or (leader,), (leader, *followers), epoch, 1)


def topic(name: str, *partitions: PartitionImage, topic_id: bytes = TOPIC_ID) -> TopicImage:
    return TopicImage(name, topic_id, dict(enumerate(partitions)), {})


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await test()

    asyncio.run(whole())


def leading(leader: Site, follower: Site, epoch: int = 1, partitions: int = 1) -> None:
    """From now on one leads all partitions and the other one follows."""
    state = led(leader.broker_id, epoch, follower.broker_id)
    whole = topic("t", *[state] * partitions)
    leader.hears(whole, leader, follower)
    follower.hears(whole, leader, follower)


async def level(leader: Site, follower: Site, name: TopicPartition = NAME) -> None:
    """Return when the follower has everything, and knows that it is committed."""
    end = leader.end(name)
    await until(lambda: follower.end(name) == end and follower.replica(name).high_watermark == end)
    await until(lambda: follower.replica(name).log.unsettled is None)  # its file is cut later
    assert follower.files(name) == leader.files(name)
