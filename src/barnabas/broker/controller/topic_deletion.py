"""Tracks topics that are being deleted, their remaining replicas, and the callers that wait for the
deletions.

A topic's nodes are removed once all brokers have confirmed that their replicas are deleted. If a
broker or log directory has failed, the removal is delayed until it is back. Until then, the topic
name remains in use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from barnabas.cluster.controller_requests import WHILE_DELETING, StopReplica
from barnabas.cluster.image import ClusterImage, TopicImage
from barnabas.errors import NONE, KafkaStorageError
from barnabas.types import TopicPartition


class TopicDeletions:
    """The deletions in progress in one term."""

    __slots__ = ("_closed", "_left", "_topic_ids", "_waiting")

    def __init__(self) -> None:
        # For each topic, the remaining replicas as (partition, broker). The value is True if the
        # broker has reported that it cannot access the replica.
        self._left: dict[str, dict[tuple[int, int], bool]] = {}
        self._topic_ids: dict[str, bytes] = {}
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}
        self._closed: Exception | None = None

    def __contains__(self, topic: str) -> bool:
        return topic in self._left

    def __iter__(self) -> Iterator[str]:
        return iter(self._left)

    def begin(self, name: str, topic: TopicImage | None) -> None:
        """Begin to delete the topic's replicas. None means that the topic does not exist."""
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
        """Process a broker's response to a deletion, with an error code for each replica.

        NONE confirms the deletion even if a log directory has failed, because only the broker can
        tell whether an inaccessible log is this replica or belongs to another topic with the same
        name. Responses to requests that were sent before this deletion are ignored, because they
        concern an earlier topic with the same name or a replica that was moved away and back.
        """
        for name, code in codes.items():
            left, replica = self._left.get(name.topic), (name.partition, broker_id)
            if left is None or replica not in left or not self._is_part_of_it(request, name):
                continue
            # The replica has not been deleted, because it is inaccessible. It will be deleted when
            # its directory is available again (KIP-112).
            if code == KafkaStorageError.code:
                left[replica] = True
            elif code == NONE:
                del left[replica]

    def _is_part_of_it(self, request: StopReplica, name: TopicPartition) -> bool:
        is_deletion = request.leader_epoch(name) == WHILE_DELETING
        return is_deletion and request.topic_ids.get(name) == self._topic_ids[name.topic]

    def without_replicas(self) -> list[str]:
        """Return the topics that have no replicas left. Their nodes can be removed."""
        return [name for name, left in self._left.items() if not left]

    def on_removed(self, names: Iterable[str]) -> None:
        """Forget these topics, because their deletion is complete."""
        for name in names:
            self._left.pop(name, None)
            self._topic_ids.pop(name, None)
            for future in self._waiting.pop(name, ()):
                if not future.done():
                    future.set_result(None)

    def is_blocked(self, name: str, image: ClusterImage) -> bool:
        """Return whether the deletion must wait for a failed broker or log directory."""
        return any(
            is_out_of_reach
            or broker_id not in image.brokers
            or _is_offline(image, TopicPartition(name, number), broker_id)
            for (number, broker_id), is_out_of_reach in self._left.get(name, {}).items()
        )

    async def until_removed(self, name: str) -> None:
        """Wait until the topic has been deleted completely. Raises the error passed to `close`."""
        if name in self._left:
            if self._closed is not None:
                raise self._closed
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(name, []).append(future)
            await future

    def close(self, error: Exception) -> None:
        """Raise the error in all waiting callers. The next controller continues the deletions."""
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
