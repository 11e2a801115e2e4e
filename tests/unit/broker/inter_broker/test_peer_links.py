"""Connections to other brokers for questions: who waits for one hears that it came to nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.inter_broker.peer_links import PeerLinks
from barnabas.broker.inter_broker.peers import Peers
from barnabas.client.errors import ConnectionLost
from barnabas.cluster.controller_requests import UpdateMetadata
from barnabas.cluster.image import BrokerImage, Endpoint
from barnabas.protocol.api import CONTROLLED_SHUTDOWN
from barnabas.protocol.messages.controlled_shutdown import ControlledShutdownRequest
from tests.kit.broker.following import WITHIN_S, Site, run, running
from tests.kit.waiting import until

SILENT = 9
"""A broker that takes connections and says nothing."""


def _registered(site: Site, port: int, epoch: int) -> None:
    node = site.server.node
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT")
    broker = BrokerImage(SILENT, (endpoint,), None, epoch)
    node.view.update(node.image._replace(brokers={**node.image.brokers, SILENT: broker}))


def test_who_waits_for_a_registration_that_is_over_asks_again(tmp_path: Path) -> None:
    """RE-9: a connection that another task gives up is lost, and a task that still asks goes on."""

    async def scene() -> None:
        taken: list[asyncio.StreamWriter] = []

        async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            taken.append(writer)

        silent = await asyncio.start_server(take, "127.0.0.1", 0)
        port = silent.sockets[0].getsockname()[1]
        async with running(tmp_path, 1) as site, asyncio.timeout(WITHIN_S):
            server = site.server
            peers = Peers(CurrentConfig(server.config), server.clock, server.node.random)
            links = PeerLinks(server.node.view, peers, "test")

            def ask() -> asyncio.Task[object]:
                request = ControlledShutdownRequest(broker_id=1, broker_epoch=1)
                return asyncio.ensure_future(
                    links.ask(SILENT, CONTROLLED_SHUTDOWN, request, 1000 * WITHIN_S, 3)
                )

            _registered(site, port, epoch=1)
            first = ask()
            await until(lambda: len(taken) == 1)
            _registered(site, port, epoch=2)
            second = ask()
            with pytest.raises(ConnectionLost):
                await first
            await until(lambda: len(taken) == 2)
            impatient = ask()
            await asyncio.sleep(0)
            impatient.cancel()
            with pytest.raises(asyncio.CancelledError):
                await impatient
            assert not second.done(), "a cancelled request takes the connection from no other"
            links.close()
            with pytest.raises(ConnectionLost):
                await second
        for writer in taken:
            writer.close()
        silent.close()

    run(scene)


def test_who_asked_a_broker_that_lost_its_power_hears_of_it_by_the_controller(
    tmp_path: Path,
) -> None:
    """PR-7: such a machine ends no connection, and markers would wait for `request.timeout.ms`."""

    async def scene() -> None:
        taken: list[asyncio.StreamWriter] = []

        async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            taken.append(writer)

        silent = await asyncio.start_server(take, "127.0.0.1", 0)
        port = silent.sockets[0].getsockname()[1]
        async with running(tmp_path, 1) as site, asyncio.timeout(WITHIN_S):
            server = site.server
            peers = Peers(CurrentConfig(server.config), server.clock, server.node.random)
            links = PeerLinks(server.node.view, peers, "test")

            async def asked(epoch: int) -> asyncio.Task[object]:
                _registered(site, port, epoch)
                request = ControlledShutdownRequest(broker_id=1, broker_epoch=1)
                asking = asyncio.ensure_future(
                    links.ask(SILENT, CONTROLLED_SHUTDOWN, request, 1000 * WITHIN_S, 3)
                )
                count = len(taken)
                await until(lambda: len(taken) > count)
                return asking

            def heard() -> None:
                image = server.node.image
                cluster_id = image.cluster_id or ""
                brokers = tuple(image.brokers.values())
                control = server.node.control
                control.carry_out(UpdateMetadata(1, control.controller_epoch, cluster_id, brokers))
                links.drop_old()

            first = await asked(epoch=1)
            heard()
            await asyncio.sleep(0)
            assert not first.done(), "it is registered as it was"
            _registered(site, port, epoch=2)
            heard()
            with pytest.raises(ConnectionLost):
                await first
            links.close()
        for writer in taken:
            writer.close()
        silent.close()

    run(scene)
