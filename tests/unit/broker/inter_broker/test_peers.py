"""SE-2: by which listener brokers and controllers reach a broker, and with which certificate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.inter_broker.peers import CONTROLLER, Peers
from barnabas.broker.server import Server
from barnabas.client.errors import ConnectionLost
from barnabas.clock import SystemClock, SystemRandom
from barnabas.config import BrokerConfig
from tests.kit.certificates import Authority
from tests.kit.raw_client import PATIENCE_S

NAMES = ("CLIENTS", "BROKERS", "CONTROL")


def config(tmp_path: Path, **others: str) -> BrokerConfig:
    return BrokerConfig(
        {
            "log.dirs": str(tmp_path / "data"),
            "listeners": ",".join(f"{name}://127.0.0.1:0" for name in NAMES),
            "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:SSL,CONTROL:PLAINTEXT",
            "inter.broker.listener.name": "BROKERS",
            **{name.replace("_", "."): value for name, value in others.items()},
        }
    )


@asynccontextmanager
async def running(settings: BrokerConfig) -> AsyncIterator[Server]:
    server = Server(settings)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def peers_of(settings: BrokerConfig) -> Peers:
    return Peers(CurrentConfig(settings), SystemClock(), SystemRandom())


async def reached(server: Server, peers: Peers, purpose: str) -> str:
    """The name of the listener that a connection for this purpose is to."""
    channel = await peers.connect(server.node.image.brokers[0], purpose, 5000)
    channel.close()
    (name,) = (each.name for each in server.listeners if each.port == channel.node.port)
    return name


@pytest.mark.parametrize("control", ["", "CONTROL"])
def test_se_2_controllers_take_the_listener_that_is_for_them(tmp_path: Path, control: str) -> None:
    files = Authority.make(tmp_path / "ca").server().settings()
    others = {"control_plane_listener_name": control} if control else {}
    settings = config(tmp_path, ssl_client_auth="required", **files, **others)

    async def scene() -> None:
        async with running(settings) as server:
            peers = peers_of(settings)
            assert await reached(server, peers, "fetcher-0") == "BROKERS"
            assert await reached(server, peers, CONTROLLER) == (control or "BROKERS")

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


def test_se_2_a_broker_with_another_listener_is_not_reached(tmp_path: Path) -> None:
    files = Authority.make(tmp_path / "ca").server().settings()
    settings = config(tmp_path, **files)
    other = BrokerConfig({"inter.broker.listener.name": "PLAINTEXT", "log.dirs": "/nowhere"})

    async def scene() -> None:
        async with running(settings) as server:
            with pytest.raises(
                ConnectionLost, match="does not advertise PLAINTEXT, the inter-broker"
            ):
                await reached(server, peers_of(other), "fetcher-0")

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))


def test_se_2_a_broker_is_a_client_by_its_listeners_settings(tmp_path: Path) -> None:
    """`listener.name.brokers.ssl.*`, not those of another listener."""
    authority = Authority.make(tmp_path / "ca")
    own = {
        f"listener.name.brokers.{name}": value
        for name, value in authority.server().settings().items()
    }
    settings = config(tmp_path, **own, **{"listener.name.brokers.ssl.client.auth": "required"})
    stranger = Authority.make(tmp_path / "other", "Other CA").server().settings()
    wrong = {f"listener.name.brokers.{name}": value for name, value in stranger.items()}

    async def scene() -> None:
        async with running(settings) as server:
            assert await reached(server, peers_of(settings), "broker") == "BROKERS"
            with pytest.raises(ConnectionLost, match="not issued by a trusted authority"):
                await reached(server, peers_of(config(tmp_path, **wrong)), "broker")

    asyncio.run(asyncio.wait_for(scene(), PATIENCE_S))
