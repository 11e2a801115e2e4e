"""Scenes on the loop of an embedded cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from barnabas import Cluster
from barnabas.broker.server import Server
from barnabas.cluster.embedded_session import EmbeddedSession
from barnabas.records.control_records import COMMIT, Marker, build_marker
from barnabas.types import TopicPartition
from tests.kit.raw_client import PATIENCE_S


def play(cluster: Cluster, scene: Callable[[], Awaitable[None]]) -> None:
    """On the loop of the brokers, within bounds."""
    cluster.thread.run(asyncio.wait_for(scene(), 2 * PATIENCE_S))


def append(leader: Server, numbers: Iterable[int], topic: str = "t") -> None:
    """Something that the followers have not: who has everything is never too slow."""
    for number in numbers:
        marker = build_marker(Marker(0, leader.clock.wall_ms(), COMMIT, 0), 1, 0)
        replica = leader.node.replicas.leader_of(TopicPartition(topic, number))
        replica.append_control(memoryview(bytearray(marker)), leader.clock.wall_ms())
    leader.node.replicas.write_staged()


def session_of(server: Server) -> EmbeddedSession:
    store = server.node.store
    assert isinstance(store, EmbeddedSession)
    return store
