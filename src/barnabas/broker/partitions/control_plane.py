"""What the controller says to this broker, carried out in the order in which it was said.

LeaderAndIsr, UpdateMetadata and StopReplica come as values: handed over by the controller in this
process, or decoded from the requests of another broker's. A deposed controller is refused: each
carries the controller's epoch, and none below the highest that was seen here counts (ZK-3, ZK-5).
Nor does a StopReplica that is older than what this broker hosts: it may have been sent long ago, on
a connection that the controller has given up, and the replica have come back since (KIP-570).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.broker.runtime.steps import Steps, at_once, in_turns
from barnabas.cluster.controller_requests import (
    ControlRequest,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from barnabas.errors import FencedLeaderEpoch, KafkaError, StaleControllerEpoch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.broker.context import Node
    from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class Control:
    """The receiving end; made with the node."""

    __slots__ = ("_node", "controller_epoch", "line")

    def __init__(self, node: Node) -> None:
        self._node = node
        self.line = asyncio.Lock()
        """Held while a request is carried out: the next one begins after its last step."""
        self.controller_epoch = 0
        """The highest that any request had."""

    async def obey(self, request: ControlRequest) -> Mapping[TopicPartition, int]:
        """Do what the controller says, others having their turns; an error code for each partition
        that a request names. What the disk must not forget is on it when this returns.

        Raises StaleControllerEpoch for a deposed one, and OSError from the log directories.
        """
        async with self.line:
            return await in_turns(self._steps(request), self._node.replicas.lanes.background)

    def carry_out(self, request: ControlRequest) -> Mapping[TopicPartition, int]:
        """`obey`, all at once."""
        return at_once(self._steps(request))

    def _steps(self, request: ControlRequest) -> Steps[Mapping[TopicPartition, int]]:
        if request.controller_epoch < self.controller_epoch:
            raise StaleControllerEpoch(
                f"{type(request).__name__} of controller {request.controller_id} in epoch "
                f"{request.controller_epoch}: there has been epoch {self.controller_epoch}"
            )
        self.controller_epoch = request.controller_epoch
        node = self._node
        if isinstance(request, UpdateMetadata):
            node.view.update(node.view.image.apply(request))
            node.replicas.live = node.view.live_brokers()
            for listener in node.brokers_listeners:
                listener()
            node.replicas.stop_what_moved(request.topics)
            if request.removed_topics:
                node.coordinators.topics_deleted(request.removed_topics)
            return {}
        if isinstance(request, LeaderAndIsr):
            return (yield from node.replicas.leader_and_isr(request))
        assert isinstance(request, StopReplica)
        node.replicas.postponed.forget(request.partitions)
        outdone = [name for name in request.partitions if self._is_outdone(request, name)]
        if not outdone:
            return (yield from node.replicas.stop_replica(request))
        _log.warning("%d replicas stay: what is to stop them is out of date", len(outdone))
        rest = tuple(name for name in request.partitions if name not in outdone)
        codes = yield from node.replicas.stop_replica(request._replace(partitions=rest))
        return {**codes, **dict.fromkeys(outdone, FencedLeaderEpoch.code)}

    def _is_outdone(self, request: StopReplica, name: TopicPartition) -> bool:
        """Whether the replica here is in a newer leader epoch than the one that is meant."""
        leader_epoch = request.leader_epoch(name)
        if leader_epoch < 0:
            return False
        try:
            replica = self._node.replicas.hosted(name)
        except KafkaError:
            return False
        return leader_epoch < replica.partition.leader_epoch
