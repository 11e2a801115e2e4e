"""Writes a transaction's markers to all of its partitions, and retries until all of them have been
written.

Once the outcome of a transaction has been decided, the control batches are written by
`marker_append` on this broker and through `marker_channel` on other brokers (KIP-98). Each marker
that has been written is reported to the transactions machine, which completes the transaction after
the last one. A marker that failed is retried for as long as this broker coordinates the
transaction. After a crash, the next coordinator sends all markers again, and duplicate markers have
no effect.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.broker.coordinator.marker_append import Ending, MarkerAppend, PlacedMarker
from barnabas.cluster.image import NO_LEADER
from barnabas.cluster.layout import TRANSACTION_TOPIC
from barnabas.errors import (
    InvalidProducerEpoch,
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    TransactionCoordinatorFenced,
)

if TYPE_CHECKING:
    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.coordinator.marker_channel import MarkerChannels
    from barnabas.broker.coordinator.shard import Shard
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.coordinator.decision import Markers
    from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)

_FIRST_RETRY_S, _LAST_RETRY_S = 0.1, 1.0
_AT_ONCE = 200  # markers written before other tasks get a turn


class MarkerRoutes(NamedTuple):
    """Defines how markers reach the leaders of their partitions."""

    view: ClusterView
    replicas: Replicas
    append: MarkerAppend
    """Appends markers to partitions led by this broker."""
    channels: MarkerChannels | None
    """Sends markers to other brokers, or is None on a standalone broker."""


class MarkerWriter:
    """Writes the markers that the transactions machines' decisions require."""

    __slots__ = ("_routes",)

    def __init__(self, routes: MarkerRoutes) -> None:
        self._routes = routes

    def send(self, shard: Shard[Any], markers: Markers) -> None:
        """Write the markers of a decision that has been committed."""
        _Sending(self._routes, shard, markers).attempt()


class _Sending:
    """The markers of one transaction, some of which have not been written yet."""

    __slots__ = ("_ending", "_left", "_markers", "_retry_s", "_routes", "_shard")

    def __init__(self, routes: MarkerRoutes, shard: Shard[Any], markers: Markers) -> None:
        self._routes = routes
        self._shard = shard
        self._markers = markers
        self._ending = Ending(
            markers.producer_id,
            markers.producer_epoch,
            markers.is_commit,
            markers.coordinator_epoch,
        )
        self._left: Sequence[TopicPartition] = markers.partitions
        self._retry_s = _FIRST_RETRY_S

    def attempt(self) -> None:
        """Write as many of the markers as possible.

        The first attempt is made immediately, because a producer starts its next transaction as
        soon as its EndTxn has been answered.
        """
        if self._shard.is_dropped:
            return
        if self._routes.channels is not None:
            self._left = self._send_away(self._routes.channels)
            if not self._left and self._markers.partitions:
                return
        # A transaction with thousands of partitions must not block the event loop.
        if len(self._left) > _AT_ONCE:
            rest = self._for(self._left[_AT_ONCE:])
            asyncio.get_running_loop().call_soon(rest.attempt)
        done: list[TopicPartition] = []
        placed: list[PlacedMarker] = []
        refused: list[tuple[TopicPartition, KafkaError]] = []
        for topic_partition in self._left[:_AT_ONCE]:
            try:
                if self._is_gone(topic_partition):
                    done.append(topic_partition)
                else:
                    placed.append(self._place(topic_partition))
            except InvalidProducerEpoch as error:
                # A producer with a later epoch has written to this partition, so it has no open
                # transaction of this epoch.
                _log.warning("%s: %s", topic_partition, error)
                done.append(topic_partition)
            except TransactionCoordinatorFenced as error:
                self._give_up(topic_partition, error)
                return
            except KafkaError as error:
                refused.append((topic_partition, error))
        # Write all markers of this step, with a single write to each log, to find out which logs
        # fail.
        self._routes.replicas.write_staged()
        for each in placed:
            topic_partition = each.replica.topic_partition
            if each.replica.log.health.is_failed:
                refused.append((topic_partition, KafkaStorageError()))
            elif each.is_committed:
                each.on_committed()
                done.append(topic_partition)
            else:
                self._await(each)
        if refused:
            self._try_again(refused)
        if done or not self._markers.partitions:
            self._report(done)

    def _for(self, left: Sequence[TopicPartition]) -> _Sending:
        """Return a copy of this object that covers only some of the partitions."""
        sending = _Sending(self._routes, self._shard, self._markers)
        sending._left = left
        return sending

    def _is_gone(self, topic_partition: TopicPartition) -> bool:
        """Return whether the partition has been deleted. In that case, its marker counts as
        written.
        """
        topics = self._routes.view.image.topics
        topic = topics.get(topic_partition.topic)
        if topic is None:
            # The image contains no topics until the controller has sent its first UpdateMetadata.
            return TRANSACTION_TOPIC in topics
        return topic_partition.partition not in topic.partitions

    def _send_away(self, channels: MarkerChannels) -> Sequence[TopicPartition]:
        """Send markers to the leaders on other brokers, and return the partitions led by this
        broker.
        """
        here = []
        away: dict[int, list[TopicPartition]] = {}
        for topic_partition in self._left:
            leader = -1 if self._is_gone(topic_partition) else self._leader_of(topic_partition)
            # Keep a partition that has no leader, and try again until it has one.
            if leader in (NO_LEADER, self._routes.view.broker_id):
                here.append(topic_partition)
            else:
                away.setdefault(leader, []).append(topic_partition)
        for leader, partitions in away.items():
            sending = self._for(partitions)
            sending._retry_s = self._retry_s
            channels.send(leader, self._ending, partitions, sending._on_answer)
        return here

    def _on_answer(self, errors: Mapping[TopicPartition, KafkaError | None]) -> None:
        """Process another broker's response.

        Partitions without an error now have the marker.
        """
        if self._shard.is_dropped:
            return
        done = []
        refused = []
        for topic_partition, error in errors.items():
            # As in `attempt`, a producer with a later epoch has written to the partition.
            if error is None or isinstance(error, InvalidProducerEpoch):
                done.append(topic_partition)
            elif isinstance(error, TransactionCoordinatorFenced):
                self._give_up(topic_partition, error)
                return
            else:
                refused.append((topic_partition, error))
        if refused:
            self._try_again(refused)
        if done:
            self._report(done)

    def _place(self, topic_partition: TopicPartition) -> PlacedMarker:
        leader = self._leader_of(topic_partition)
        if leader != self._routes.view.broker_id:
            raise NotLeaderOrFollower(f"{topic_partition} is led by broker {leader}")
        return self._routes.append.append(topic_partition, self._ending)

    def _leader_of(self, topic_partition: TopicPartition) -> int:
        topic = self._routes.view.image.topics.get(topic_partition.topic)
        return -1 if topic is None else topic.partitions[topic_partition.partition].leader

    def _await(self, placed: PlacedMarker) -> None:
        topic_partition = placed.replica.topic_partition

        def on_reached(future: asyncio.Future[None]) -> None:
            error = future.exception()
            if isinstance(error, KafkaError):
                self._try_again([(topic_partition, error)])
                return
            self._report([topic_partition])

        placed.when_committed().add_done_callback(on_reached)

    def _report(self, done: Sequence[TopicPartition]) -> None:
        shard, markers = self._shard, self._markers
        if not shard.is_dropped:
            shard.carry_out(
                shard.machine.markers_written(
                    markers.transactional_id,
                    markers.producer_id,
                    markers.producer_epoch,
                    done,
                    shard.now(),
                )
            )

    def _try_again(self, refused: Sequence[tuple[TopicPartition, KafkaError]]) -> None:
        if self._retry_s == _FIRST_RETRY_S:
            _log.warning(
                "cannot complete the transaction of %r in %s%s yet: %s; retrying",
                self._markers.transactional_id,
                refused[0][0],
                f" and {len(refused) - 1} more of its partitions" if len(refused) > 1 else "",
                refused[0][1],
            )
        again = self._for([topic_partition for topic_partition, _ in refused])
        again._retry_s = min(2 * self._retry_s, _LAST_RETRY_S)
        asyncio.get_running_loop().call_later(self._retry_s, again.attempt)

    def _give_up(self, topic_partition: TopicPartition, error: KafkaError) -> None:
        _log.error(
            "cannot complete the transaction of %r: a later coordinator has written to %s (%s)",
            self._markers.transactional_id,
            topic_partition,
            error,
        )
