"""Carries out the controller's requests, in the order in which they were sent.

LeaderAndIsr, UpdateMetadata and StopReplica come as values: handed over by the controller in this
process, or decoded from the requests of another broker's. A deposed controller is refused: each
request carries the controller's epoch, and none below the highest that was seen here counts (ZK-3,
ZK-5). Nor does a StopReplica that is older than what this broker hosts: it may have been sent long
ago, on a connection that the controller has given up, and the replica have come back since
(KIP-570).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.runtime.steps import Steps, at_once, in_turns
from barnabas.cluster.controller_requests import (
    ControlRequest,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
)
from barnabas.counted import counted
from barnabas.errors import FencedLeaderEpoch, KafkaError, StaleControllerEpoch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.broker.partitions.role_changes import RoleChanges
    from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


class MetadataListener(Protocol):
    """Is notified when the image of the cluster has been replaced."""

    def brokers_changed(self) -> None:
        """Brokers may have joined or failed."""

    def topics_deleted(self, names: Sequence[str]) -> None:
        """The controller has removed these topics."""


class ControlPlane:
    """Receives the controller's requests."""

    __slots__ = ("_listeners", "_replicas", "_role_changes", "_view", "controller_epoch", "line")

    def __init__(
        self,
        view: ClusterView,
        replicas: Replicas,
        role_changes: RoleChanges,
        listeners: Sequence[MetadataListener],
    ) -> None:
        self._view = view
        self._replicas = replicas
        self._role_changes = role_changes
        self._listeners = listeners
        self.line = role_changes.line
        """Held while a request is carried out: the next one begins after its last step."""
        self.controller_epoch = 0
        """The highest that any request had."""

    async def handle(self, request: ControlRequest) -> Mapping[TopicPartition, int]:
        """Carry out a request, others having their turns; an error code for each partition that it
        names. What the disk must not forget is on it when this returns.

        Raises StaleControllerEpoch for a deposed controller, and OSError from the log directories.
        """
        async with self.line:
            return await in_turns(self._steps(request), self._replicas.threads.background)

    def carry_out(self, request: ControlRequest) -> Mapping[TopicPartition, int]:
        """`handle`, all at once."""
        return at_once(self._steps(request))

    def _steps(self, request: ControlRequest) -> Steps[Mapping[TopicPartition, int]]:
        # A deposed controller may not know it yet: its requests are answered, and not carried out
        # (ZK-3).
        if request.controller_epoch < self.controller_epoch:
            raise StaleControllerEpoch(
                f"{type(request).__name__} of controller {request.controller_id} in epoch "
                f"{request.controller_epoch}: there has been epoch {self.controller_epoch}"
            )
        self.controller_epoch = request.controller_epoch
        if isinstance(request, UpdateMetadata):
            self._update_metadata(request)
            return {}
        if isinstance(request, LeaderAndIsr):
            return (yield from self._role_changes.leader_and_isr(request))
        assert isinstance(request, StopReplica)
        return (yield from self._stop_replica(request))

    def _update_metadata(self, request: UpdateMetadata) -> None:
        # The view first: what is notified below reads it.
        self._view.update(self._view.image.apply(request))
        self._replicas.brokers_changed()
        for listener in self._listeners:
            listener.brokers_changed()
        # StopReplica alone would not do: a broker that was cut off at the time does not get it.
        self._role_changes.stop_what_moved(request.topics)
        if request.removed_topics:
            for listener in self._listeners:
                listener.topics_deleted(request.removed_topics)

    def _stop_replica(self, request: StopReplica) -> Steps[Mapping[TopicPartition, int]]:
        # What is to be stopped need not be hosted first, once there are descriptors.
        self._role_changes.deferred.forget(request.partitions)
        outdated = [name for name in request.partitions if self._is_outdated(request, name)]
        if not outdated:
            return (yield from self._role_changes.stop_replica(request))
        stale = counted(len(outdated), "replica")
        _log.warning("a StopReplica for %s is out of date, and not carried out", stale)
        rest = tuple(name for name in request.partitions if name not in outdated)
        codes = yield from self._role_changes.stop_replica(request._replace(partitions=rest))
        return {**codes, **dict.fromkeys(outdated, FencedLeaderEpoch.code)}

    def _is_outdated(self, request: StopReplica, name: TopicPartition) -> bool:
        """Return whether the replica here is in a newer leader epoch than the request."""
        leader_epoch = request.leader_epoch(name)
        # Requests before version 3, and those for a deletion by Kafka (-2), say no epoch (KIP-570).
        if leader_epoch < 0:
            return False
        try:
            replica = self._replicas.replica_of(name)
        except KafkaError:
            return False
        return leader_epoch < replica.partition.leader_epoch
