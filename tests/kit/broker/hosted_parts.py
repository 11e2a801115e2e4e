"""The partitions' part of a broker, without a server around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.partitions.alter_partition_queue import AlterPartitionQueue
from barnabas.broker.partitions.directory_failure import DirectoryFailures
from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.broker.partitions.replica_removal import ReplicaRemoval
from barnabas.broker.partitions.replicas import Replicas
from barnabas.broker.partitions.role_changes import RoleChanges
from barnabas.broker.partitions.unplaced_logs import UnplacedLogs
from barnabas.clock import Clock
from barnabas.config import BrokerConfig
from barnabas.metrics import Registry
from barnabas.storage.store import LogStore


def _keep_nothing() -> None:
    """A test's process is not the broker's alone."""


class HostedParts:
    """What broker 0 hosts, and how the controller changes that."""

    def __init__(
        self,
        store: LogStore,
        config: BrokerConfig,
        clock: Clock,
        listeners: Callable[[Replicas], Sequence[ReplicaListener]] = lambda _: (),
        keep_objects: Callable[[], None] = _keep_nothing,
    ) -> None:
        """`listeners` makes those that are notified of roles."""
        self.view = ClusterView(0)
        self.config = CurrentConfig(config)
        metrics = Registry()
        self.replicas = Replicas(self.view, store, self.config, clock, metrics)
        self.proposals = AlterPartitionQueue(metrics)
        heard = listeners(self.replicas)
        self.failures = DirectoryFailures(ReplicaRemoval(self.replicas, heard))
        self.role_changes = RoleChanges(
            self.replicas, self.failures, self.proposals, heard, UnplacedLogs(), keep_objects
        )
