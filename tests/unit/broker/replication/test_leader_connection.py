"""The connection to a leader: which versions it needs, where it finds the leader, what it asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.inter_broker.peers import Peers
from barnabas.broker.replication.leader_connection import Bounds, LeaderConnection, ReceiveMemory
from barnabas.client.errors import ConnectionLost
from barnabas.cluster.image import BrokerImage, Endpoint
from barnabas.errors import FencedLeaderEpoch, UnsupportedVersion
from barnabas.protocol.api import API_VERSIONS, FETCH, LIST_OFFSETS
from barnabas.protocol.frame import decode_request_header, encode_response
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.types import TopicPartition
from tests.kit.broker.following import Site, led, pair, run, running, topic

NAME = TopicPartition("t", 0)


def connection(site: Site, leader_id: int) -> LeaderConnection:
    server = site.server
    node = server.node
    peers = Peers(CurrentConfig(server.config), server.clock, node.random)
    return LeaderConnection(node.view, node.current_config, peers, leader_id, 0)


def knows(site: Site, broker_id: int, port: int) -> None:
    """From now on the image says that a broker is there."""
    endpoint = Endpoint("PLAINTEXT", "127.0.0.1", port, "PLAINTEXT")
    node = site.server.node
    brokers = {**node.image.brokers, broker_id: BrokerImage(broker_id, (endpoint,), None, 1)}
    node.view.update(node.image._replace(brokers=brokers))


@asynccontextmanager
async def speaking(fetch_version: int) -> AsyncIterator[int]:
    """A leader that says which version of Fetch it knows, and nothing else; its port."""
    offered = [
        ApiVersion(api_key=FETCH.key, min_version=0, max_version=fetch_version),
        ApiVersion(api_key=LIST_OFFSETS.key, min_version=0, max_version=5),
    ]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        header = decode_request_header(memoryview(await reader.readexactly(size)))
        answer = ApiVersionsResponse(api_keys=offered)
        parts = encode_response(API_VERSIONS, header.api_version, header.correlation_id, answer)
        writer.write(b"".join(map(bytes, parts)))
        await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def test_a_leader_that_sends_no_diverging_epochs_is_too_old(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, 1) as one, speaking(12) as newer, speaking(11) as older:
            leader = connection(one, 2)
            knows(one, 2, newer)
            await leader.open()
            assert leader.fetch_version == 12
            leader.close()
            knows(one, 2, older)
            with pytest.raises(UnsupportedVersion, match="supports Fetch only up to version 11"):
                await leader.open()
            leader.close()

    run(test)


def test_where_the_leader_is_is_looked_up_for_each_connection(tmp_path: Path) -> None:
    """It may be nowhere yet, or have come back elsewhere."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leader = connection(one, 2)
            with pytest.raises(ConnectionLost, match="not registered"):
                await leader.open()
            one.hears(topic("t", led(1, 1)), one, two)
            await leader.open()
            leader.close()
            knows(one, 2, 1)  # where nothing listens
            with pytest.raises(ConnectionLost):
                await leader.open()
            one.hears(topic("t", led(1, 1)), one, two)
            await leader.open()
            leader.close()

    run(test)


def test_the_bounds_of_a_leaders_logs(tmp_path: Path) -> None:
    """Up to the log's end, which is above what consumers can see; an error is the partition's."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            # Broker 1 is in sync and has fetched nothing, so nothing is committed.
            state = led(2, 1, 1, isr=(2, 1))
            for site in (two, one):
                site.hears(topic("t", state, state, state), two)
            other = TopicPartition("t", 1)
            for _ in range(5):
                two.append(NAME, b"a")
                two.append(other, b"a")
            two.replica(other).log.raise_log_start(2)
            await one.fetchers.stop()
            leader = connection(one, 2)
            await leader.open()
            old = TopicPartition("t", 2)
            found = await leader.bounds({NAME: 1, other: 1, old: 0})
            assert found[NAME] == Bounds(0, 0, 5)
            assert found[other] == Bounds(0, 2, 5)
            assert found[old].error_code == FencedLeaderEpoch.code
            leader.close()

    run(test)


# --- receive buffers -----------------------------------------------------------------------------


def test_a_buffer_is_used_again_when_no_view_of_it_is_left() -> None:
    memory = ReceiveMemory()
    first = id(memory.take(1000))
    assert id(memory.take(1000)) == first
    view = memoryview(memory.take(1000))[10:20]
    other = memory.take(1000)
    assert id(other) != first
    view.release()
    assert id(memory.take(1000)) == first


def test_two_take_turns() -> None:
    """The connection asks for the next buffer while the records of the last one are written."""
    memory = ReceiveMemory()
    seen = set()
    held = memoryview(memory.take(1000))
    for _ in range(10):
        taken = memory.take(1000)
        seen.add(id(taken))
        held = memoryview(taken)
        del taken
    assert len(seen) == 2
    held.release()


def test_all_are_as_large_as_the_largest_that_was_asked_for() -> None:
    memory = ReceiveMemory()
    assert len(memory.take(1000)) > 1000
    assert len(memory.take(1_000_000)) > 1_000_000
    assert len(memory.take(10)) > 1_000_000


def test_what_is_looked_at_is_kept_apart_even_if_more_are_needed_than_there_are() -> None:
    memory = ReceiveMemory()
    views = [memoryview(memory.take(100)) for _ in range(5)]
    for index, view in enumerate(views):
        view[:1] = bytes([index])
    assert [view[0] for view in views] == list(range(5))
