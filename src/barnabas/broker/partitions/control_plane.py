"""Applies the controller's requests in the order in which the controller sent them.

LeaderAndIsr, UpdateMetadata and StopReplica requests arrive as values, either directly from the
controller in this process or decoded from a request by a controller on another broker. Each request
contains the controller epoch. If this epoch is lower than the highest epoch seen so far, the
request was sent by a deposed controller and is rejected (ZK-3, ZK-5). A StopReplica is also
rejected if its leader epoch is older than that of the hosted replica, because the request may have
been delayed on an old connection while the replica was reassigned to this broker (KIP-570).
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
    """The interface of objects that are notified when the cluster image is replaced."""

    def brokers_changed(self) -> None:
        """React to a possible change in the set of live brokers."""

    def topics_deleted(self, names: Sequence[str]) -> None:
        """React to the controller's deletion of these topics."""


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
        """The lock that each request holds until its last step has finished."""
        self.controller_epoch = 0
        """The highest controller epoch in any request so far."""

    async def handle(self, request: ControlRequest) -> Mapping[TopicPartition, int]:
        """Apply a request while letting other tasks run in between, and return an error code for
        each partition.

        Everything that must survive a crash is on disk when this returns. Raises
        StaleControllerEpoch for a deposed controller, and OSError from the log directories.
        """
        async with self.line:
            return await in_turns(self._steps(request), self._replicas.threads.background)

    def carry_out(self, request: ControlRequest) -> Mapping[TopicPartition, int]:
        """Apply a request in the same way as `handle`, but without letting other tasks run in
        between.
        """
        return at_once(self._steps(request))

    def _steps(self, request: ControlRequest) -> Steps[Mapping[TopicPartition, int]]:
        # A deposed controller may not know that it has been deposed. Its requests are answered but
        # not applied (ZK-3).
        if request.controller_epoch < self.controller_epoch:
            raise StaleControllerEpoch(
                f"{type(request).__name__} of controller {request.controller_id} in epoch "
                f"{request.controller_epoch}: the current epoch is {self.controller_epoch}"
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
        # Update the view first, because the listeners that are notified below read it.
        self._view.update(self._view.image.apply(request))
        self._replicas.brokers_changed()
        for listener in self._listeners:
            listener.brokers_changed()
        # StopReplica is not enough, because a broker never receives it if the broker cannot be
        # reached when it is sent.
        self._role_changes.stop_what_moved(request.topics)
        if request.removed_topics:
            for listener in self._listeners:
                listener.topics_deleted(request.removed_topics)

    def _stop_replica(self, request: StopReplica) -> Steps[Mapping[TopicPartition, int]]:
        # Deferred replicas must not be hosted if they are being stopped.
        self._role_changes.deferred.forget(request.partitions)
        outdated = [name for name in request.partitions if self._is_outdated(request, name)]
        if not outdated:
            return (yield from self._role_changes.stop_replica(request))
        stale = counted(len(outdated), "replica")
        _log.warning("ignoring a stale StopReplica for %s", stale)
        rest = tuple(name for name in request.partitions if name not in outdated)
        codes = yield from self._role_changes.stop_replica(request._replace(partitions=rest))
        return {**codes, **dict.fromkeys(outdated, FencedLeaderEpoch.code)}

    def _is_outdated(self, request: StopReplica, name: TopicPartition) -> bool:
        """Return whether the hosted replica's leader epoch is newer than the one in the request."""
        leader_epoch = request.leader_epoch(name)
        # There is no leader epoch in requests before version 3, or in Kafka's requests to delete a
        # replica (-2) (KIP-570).
        if leader_epoch < 0:
            return False
        try:
            replica = self._replicas.replica_of(name)
        except KafkaError:
            return False
        return leader_epoch < replica.partition.leader_epoch
