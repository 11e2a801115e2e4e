"""Clients that have not authenticated: how long they may take, and what they cost (SE-3)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from barnabas import Broker
from barnabas.broker.network.complaints import Complaints
from barnabas.broker.network.unauthenticated_connections import (
    BUFFER_BYTES,
    MEMORY_BYTES,
    MOST,
    UnauthenticatedConnections,
)
from barnabas.net.connection import Connection
from barnabas.protocol.api import METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.kit.raw_client import RawClient
from tests.kit.set_clock import SetClock

SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="alice" password="a-secret" user_alice="a-secret";'
    ),
    "barnabas.connection.login.deadline.ms": 300,
}
FRAME_BYTES = 500_000


class Listening:
    """The receiver of frames that never end."""

    def __init__(self) -> None:
        self.opened: list[Connection] = []

    def connection_opened(self, connection: Connection) -> None:
        self.opened.append(connection)

    def frame_received(self, connection: Connection, frame: memoryview) -> None:
        raise AssertionError("no frame is whole")

    def wake_ended(self, connection: Connection) -> None: ...

    def connection_closed(self, connection: Connection, error: Exception | None) -> None: ...


@pytest.fixture(scope="module")
def secured() -> Iterator[Broker]:
    with Broker(config=SETTINGS) as broker:
        yield broker


def log_in(client: RawClient) -> None:
    client.call(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    request = SaslAuthenticateRequest(auth_bytes=b"\0alice\0a-secret")
    assert client.call(SASL_AUTHENTICATE, 2, request).error_code == 0


@pytest.mark.parametrize("said", ["nothing", "half a frame", "hello"])
def test_se_3_a_client_that_takes_too_long_is_closed(secured: Broker, said: str) -> None:
    with RawClient(secured.bootstrap_servers) as known:
        log_in(known)
        with RawClient(secured.bootstrap_servers) as stranger:
            if said == "half a frame":
                stranger.send_bytes(b"\0\0\1\0abc")
            elif said == "hello":
                stranger.call(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
            assert stranger.is_closed_by_peer()
        # Whoever came before it, and has authenticated, stays.
        assert known.call(METADATA, 12, MetadataRequest(topics=[])).brokers


def strangers(clock: SetClock) -> UnauthenticatedConnections:
    return UnauthenticatedConnections(1_000, clock, Complaints(logging.getLogger("test"), clock))


def unopened() -> Connection:
    return Connection(Listening(), max_frame_bytes=FRAME_BYTES)


def test_se_3_of_too_many_the_oldest_is_closed() -> None:
    async def come() -> None:
        some = strangers(SetClock())
        first, second = unopened(), unopened()
        for connection in (first, second, *(unopened() for _ in range(MOST - 1))):
            some.add(connection)
        assert first.is_closing and not second.is_closing
        assert len(some) == MOST
        some.remove(second)
        some.remove(first)  # closed already
        assert len(some) == MOST - 1
        some.close()

    asyncio.run(come())


def test_se_3_what_strangers_have_sent_takes_little_memory_in_all() -> None:
    """Long messages are begun by many, and ended by none."""
    count = 2 * MEMORY_BYTES // FRAME_BYTES
    some = strangers(SetClock())
    listening = Listening()

    async def send() -> int:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: Connection(
                listening,
                max_frame_bytes=FRAME_BYTES,
                memory=some.memory,
                buffer_bytes=BUFFER_BYTES,
            ),
            "127.0.0.1",
            0,
        )
        port = server.sockets[0].getsockname()[1]
        begun = FRAME_BYTES.to_bytes(4, "big") + bytes(FRAME_BYTES - 1)
        writers = []
        for _ in range(count):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begun)
            writers.append(writer)

        def held() -> int:
            return sum(each.held_bytes for each in listening.opened)

        while held() < MEMORY_BYTES - FRAME_BYTES:
            await asyncio.sleep(0.01)
        for _ in range(count):  # turns in which the others could be read as well
            await asyncio.sleep(0.001)
        most = held()
        for writer in writers:
            writer.transport.abort()
        server.close()
        return most

    held_bytes = asyncio.run(send())
    assert held_bytes <= MEMORY_BYTES + FRAME_BYTES + count * BUFFER_BYTES
