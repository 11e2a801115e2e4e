"""The topics that are being deleted: their remaining replicas, and the waiting callers.

A topic's nodes are removed when every replica has been deleted, as confirmed by the broker that
hosts it. A broker that has failed, or whose log directory has failed, confirms when it is back;
until then the name is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from barnabas.cluster.controller_requests import WHILE_DELETING, StopReplica
from barnabas.cluster.image import ClusterImage, TopicImage
from barnabas.errors import NONE, KafkaStorageError
from barnabas.types import TopicPartition


class TopicDeletions:
    """The deletions that one controller has begun."""

    __slots__ = ("_closed", "_left", "_topic_ids", "_waiting")

    def __init__(self) -> None:
        # (partition, broker) by topic; True if the broker has answered that it cannot reach the
        # replica
        self._left: dict[str, dict[tuple[int, int], bool]] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._closed: Exception | None = None

    def __contains__(self, topic: str) -> bool:
        return topic in self._left

    def __iter__(self) -> Iterator[str]:
        return iter(self._left)

    def begin(self, name: str, topic: TopicImage | None) -> None:
        """Begin a deletion of the topic's replicas. None: there is a request, but no topic."""
        partitions = {} if topic is None else topic.partitions
        self._left[name] = {
            (number, broker_id): False
            for number, partition in partitions.items()
            for broker_id in partition.replicas
        }
        if topic is not None:
            self._topic_ids[name] = topic.topic_id

    def on_answer(
        self, broker_id: int, request: StopReplica, codes: Mapping[TopicPartition, int]
    ) -> None:
        """Note a broker's answer to a request to delete replicas: an error code for each.

        NONE counts, whatever is known about its directories: only the broker can distinguish a
        replica that it cannot reach from another topic's log of that name. The answer to a request
        from before this deletion does not count: it is about an earlier topic of that name, or
        about a replica that was removed from the broker and given back to it.
        """
        for name, code in codes.items():
            left, replica = self._left.get(name.topic), (name.partition, broker_id)
            if left is None or replica not in left or not self._is_part_of_it(request, name):
                continue
            # The replica is out of reach, not deleted: it counts when its directory is back
            # (KIP-112).
            if code == KafkaStorageError.code:
                left[replica] = True
            elif code == NONE:
                del left[replica]

    def _is_part_of_it(self, request: StopReplica, name: TopicPartition) -> bool:
        is_deletion = request.leader_epoch(name) == WHILE_DELETING
        return is_deletion and request.topic_ids.get(name) == self._topic_ids[name.topic]

    def without_replicas(self) -> list[str]:
        """Return the topics without replicas, whose nodes can now be removed."""
        return [name for name, left in self._left.items() if not left]

    def on_removed(self, names: Iterable[str]) -> None:
        """Forget these topics, of which nothing is left."""
        for name in names:
            self._left.pop(name, None)
            self._topic_ids.pop(name, None)
            for future in self._waiting.pop(name, ()):
                if not future.done():
                    future.set_result(None)

    def is_blocked(self, name: str, image: ClusterImage) -> bool:
        """Return whether the deletion is waiting for a broker or log directory that has failed."""
        return any(
            is_out_of_reach
            or broker_id not in image.brokers
            or _is_offline(image, TopicPartition(name, number), broker_id)
            for (number, broker_id), is_out_of_reach in self._left.get(name, {}).items()
        )

    async def until_removed(self, name: str) -> None:
        """Wait until nothing is left of the topic; raises the error that `close` is given."""
        if name in self._left:
            if self._closed is not None:
                raise self._closed
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(name, []).append(future)
            await future

    def close(self, error: Exception) -> None:
        """Give every caller the error; the next controller continues the deletions."""
        self._closed = error
        waiting, self._waiting = self._waiting, {}
        for futures in waiting.values():
            for future in futures:
                if not future.done():
                    future.set_exception(error)


def _is_offline(image: ClusterImage, name: TopicPartition, broker_id: int) -> bool:
    topic = image.topics.get(name.topic)
    partition = None if topic is None else topic.partitions.get(name.partition)
    return partition is not None and broker_id in partition.offline_replicas
