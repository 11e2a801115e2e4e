"""What one broker says to another, and a lone broker that takes itself for one of several."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from barnabas import Broker
from barnabas.broker.inter_broker.control_plane_wire import (
    stop_replica_request,
)
from barnabas.broker.node import Node
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState, StopReplica
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.image import PartitionImage
from barnabas.cluster.layout import TopicNode
from barnabas.cluster.store import Set
from barnabas.protocol.api import Api
from barnabas.protocol.message import Message
from barnabas.protocol.messages.stop_replica import (
    StopReplicaRequest,
)
from barnabas.types import TopicPartition
from tests.kit.broker.group_calls import node_of
from tests.kit.raw_client import PATIENCE_S, RawClient

BROKER_EPOCH = 500
"""In which the broker has registered, as it believes."""

CONTROLLER_EPOCH = 900
"""Of a controller that has come after the broker's own."""

T = TypeVar("T")


class Member(NamedTuple):
    """A broker of a cluster, and a connection on which somebody speaks as another one of it."""

    broker: Broker
    client: RawClient

    @property
    def node(self) -> Node:
        return node_of(self.broker)

    def call(self, api: Api, request: Message, version: int | None = None) -> Any:
        return self.client.call(api, api.max_version if version is None else version, request)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Something done on the broker's own loop."""
        return self.broker.thread.run(work, PATIENCE_S)


@contextmanager
def cluster_member(data_dir: Path | None = None) -> Iterator[Member]:
    """A broker of a test's own: another controller's word is not for those of others."""
    with Broker(data_dir) as broker, RawClient(broker.bootstrap_servers) as client:
        member = Member(broker, client)
        member.node.view.has_peers = True
        member.node.view.on_registered(BROKER_EPOCH)
        yield member


def rewrite_topic(data_dir: Path, topic: str, change: Callable[[TopicNode], TopicNode]) -> None:
    """As somebody wrote it who was controller before; the broker is not running."""

    async def rewrite() -> None:
        store = EmbeddedStore.open(data_dir)
        path = layout.topic_path(topic)
        found = await store.read(path)
        assert found is not None
        changed = change(layout.decode_topic(topic, found.data))
        await store.commit([Set(path, layout.encode_topic_node(changed))])
        await store.close()

    asyncio.run(rewrite())


def led(topic: str, numbers: list[int], leader: int = 0, leader_epoch: int = 3) -> LeaderAndIsr:
    """Partitions with the replicas 0 and 7, as a controller describes them."""
    partition = PartitionImage(leader, leader_epoch, (leader,), (0, 7), 2, CONTROLLER_EPOCH)
    states = [
        PartitionState(TopicPartition(topic, number), topic_id(topic), partition, {}, True)
        for number in numbers
    ]
    return LeaderAndIsr(7, CONTROLLER_EPOCH, tuple(states))


def topic_id(topic: str) -> bytes:
    return topic.encode().ljust(16, b"\0")[:16]


def stop(
    topic: str, numbers: list[int], *, delete: bool, controller_epoch: int = CONTROLLER_EPOCH
) -> tuple[StopReplicaRequest, int]:
    names = tuple(TopicPartition(topic, number) for number in numbers)
    value = StopReplica(7, controller_epoch, names, delete)
    return stop_replica_request(value, BROKER_EPOCH)
