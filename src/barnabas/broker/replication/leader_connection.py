"""Manages a fetcher's connection to a leader, for Fetch and ListOffsets.

Only one request is in flight at a time. If the connection has been lost, `open` opens a new one. It
looks up the leader's address each time, because the leader may have been restarted at a different
address.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from barnabas.client.errors import ConnectionLost
from barnabas.controller.broker_versions import FOLLOWERS_FETCH_VERSION
from barnabas.errors import UnsupportedVersion
from barnabas.net.memory import MemoryPool, has_views
from barnabas.protocol.api import FETCH, LIST_OFFSETS
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.types import TopicPartition, by_topic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.inter_broker.peers import Peers
    from barnabas.client.channel import Channel
    from barnabas.cluster.image import BrokerImage
    from barnabas.protocol.message import Message

_EARLIEST, _LATEST = -2, -1
_BUFFERS = 2
_ROOM_BYTES = 4096
"""Extra space that ensures that the last read of a response does not fill the buffer."""


class Bounds(NamedTuple):
    """The start and end offsets of a log on the leader, or an error."""

    error_code: int
    earliest: int
    latest: int


class ReceiveMemory(MemoryPool):
    """Provides two buffers that alternately receive a leader's responses.

    Only one response is in flight at a time. Its records are views of the buffer until they have
    been written. In the meantime, the event loop may already need the next buffer, so two buffers
    are needed and are enough. Each buffer grows to the size of the largest response. Responses
    therefore do not have to be copied, and the kernel does not have to clear new pages. The buffers
    need no limit, because the fetch size is limited.
    """

    __slots__ = ("_buffers", "_largest_bytes")

    def __init__(self) -> None:
        super().__init__()
        self._buffers: list[bytearray] = []
        self._largest_bytes = 0

    def take(self, size_bytes: int) -> bytearray:
        """Return a buffer that is not in use and is at least as large as the largest buffer ever
        requested.
        """
        if size_bytes > self._largest_bytes:
            self._largest_bytes = size_bytes + _ROOM_BYTES
            self._buffers.clear()
        for buffer in self._buffers:
            if not has_views(buffer):
                return buffer
        buffer = bytearray(self._largest_bytes)
        if len(self._buffers) < _BUFFERS:
            self._buffers.append(buffer)
        return buffer

    def give(self, buffer: bytearray) -> None:
        """Do nothing, because a buffer is in use as long as there are views of it."""


class LeaderConnection:
    """A connection to one leader, which is identified by its broker id."""

    __slots__ = (
        "_channel",
        "_config",
        "_memory",
        "_number",
        "_peers",
        "_view",
        "fetch_version",
        "leader_id",
    )

    def __init__(
        self,
        view: ClusterView,
        config: CurrentConfig,
        peers: Peers,
        leader_id: int,
        number: int,
    ) -> None:
        """Create a connection that is not open yet. `number` is the fetcher's number, which becomes
        part of the client id.
        """
        self._view = view
        self._config = config
        self._peers = peers
        self._number = number
        self._memory = ReceiveMemory()
        self._channel: Channel | None = None
        self.leader_id = leader_id
        self.fetch_version = 0
        """The highest version that both sides support. Set by `open`."""

    async def open(self) -> None:
        """Open the connection. Raises ConnectionLost, NoAnswer, or, if the leader is too old,
        UnsupportedVersion.
        """
        channel = await self._peers.connect(
            self._leader(),
            f"fetcher-{self._number}",
            self._config.int("replica.socket.timeout.ms"),
            self._memory,
        )
        self._channel = channel
        self.fetch_version = channel.version(FETCH)
        if self.fetch_version < FOLLOWERS_FETCH_VERSION:
            raise UnsupportedVersion(
                f"broker {self.leader_id} supports Fetch only up to version "
                f"{self.fetch_version}; followers need version {FOLLOWERS_FETCH_VERSION} (Kafka "
                "2.7)"
            )

    def _leader(self) -> BrokerImage:
        known = self._view.image.brokers.get(self.leader_id)
        if known is None:
            raise ConnectionLost(f"broker {self.leader_id} is not registered")
        return known

    def close(self) -> None:
        """Close the connection if it is open."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    async def fetch(self, request: FetchRequest, version: int) -> FetchResponse:
        """Send a fetch and return the response, whose records are views of the receive buffer.

        The buffer is reused as soon as there are no more views of it. Raises ConnectionLost,
        NoAnswer or CorruptData.
        """
        assert self._channel is not None
        response = await self._channel.send(FETCH, request, version)
        assert isinstance(response, FetchResponse)
        return response

    async def bounds(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, Bounds]:
        """Return the start and end offsets of the logs on the leader in these leader epochs. Raises
        the same errors as `fetch`.
        """
        earliest, latest = await asyncio.gather(
            self._list_offsets(epochs, _EARLIEST), self._list_offsets(epochs, _LATEST)
        )
        begins, ends = _rows(earliest), _rows(latest)
        return {
            name: Bounds(begin.error_code or ends[name].error_code, begin.offset, ends[name].offset)
            for name, begin in begins.items()
            if name in ends
        }

    def _list_offsets(
        self, epochs: Mapping[TopicPartition, int], timestamp: int
    ) -> asyncio.Future[Message]:
        assert self._channel is not None
        topics = [
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=number,
                        current_leader_epoch=epochs[TopicPartition(topic, number)],
                        timestamp=timestamp,
                    )
                    for number in numbers
                ],
            )
            for topic, numbers in by_topic(epochs).items()
        ]
        request = ListOffsetsRequest(replica_id=self._view.broker_id, topics=topics)
        return self._channel.send(LIST_OFFSETS, request, self._channel.version(LIST_OFFSETS))


def _rows(response: Message) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
    assert isinstance(response, ListOffsetsResponse)
    return {
        TopicPartition(topic.name, row.partition_index): row
        for topic in response.topics
        for row in topic.partitions
    }
