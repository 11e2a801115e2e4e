"""Our clients and hosts with several addresses, or none that answers."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from barnabas.client import Admin
from barnabas.client.errors import NoBrokersAvailable
from barnabas.net.loop import new_event_loop
from tests.kit.processes.broker_process import free_port

if TYPE_CHECKING:
    import barnabas

pytestmark = pytest.mark.secured

LOOPS = [asyncio.new_event_loop, new_event_loop]


def run(loop: Callable[[], asyncio.AbstractEventLoop], work: Any) -> Any:
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(work)


@pytest.fixture
def silent(broker: barnabas.Broker) -> Iterator[str]:
    """An address where the broker's port takes connections no more, and refuses none."""
    port = int(broker.bootstrap_servers.rpartition(":")[2])
    with ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.2", port))
        full.listen(0)
        for _ in range(4):  # its queue
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.2", port))
        yield "127.0.0.2"


@pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.2 has to be set up elsewhere")
def test_a_silent_address_does_not_use_up_the_time_of_the_next(
    broker: barnabas.Broker,
    silent: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """KIP-302: with the first address alone, no connection is made at all."""
    port = broker.bootstrap_servers.rpartition(":")[2]
    real = socket.getaddrinfo

    def resolve(host: str, *rest: Any, **how: Any) -> Any:
        if host != "two.addresses.test":
            return real(host, *rest, **how)
        return [each for address in (silent, "127.0.0.1") for each in real(address, *rest, **how)]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    async def topics() -> object:
        async with Admin(f"two.addresses.test:{port}") as admin:
            return await admin.list_topics()

    assert run(asyncio.new_event_loop, topics()) is not None  # uvloop's looks names up by itself


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_refused_connection_is_said_in_words(
    loop: Callable[[], asyncio.AbstractEventLoop], host: str
) -> None:
    port = free_port()

    async def connect() -> None:
        async with Admin(f"{host}:{port}"):
            pass

    with pytest.raises(NoBrokersAvailable, match=f"{host}:{port}: connection refused$"):
        run(loop, connect())
