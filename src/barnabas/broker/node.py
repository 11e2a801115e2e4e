"""Defines the parts of a broker that its request handlers use. No other code receives a Node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.named_tuple import NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.configs.dynamic_config import DynamicConfig
    from barnabas.broker.controller.runner import ControllerRunner
    from barnabas.broker.coordinator.coordinators import Coordinators
    from barnabas.broker.coordinator.internal_topics import InternalTopics
    from barnabas.broker.coordinator.marker_append import MarkerAppend
    from barnabas.broker.coordinator.producer_ids import ProducerIds
    from barnabas.broker.coordinator.shards import Shards
    from barnabas.broker.coordinator.verification import Verification
    from barnabas.broker.partitions.batch_conversion import BatchConverter
    from barnabas.broker.partitions.control_plane import ControlPlane
    from barnabas.broker.partitions.deleted_topics import DeletedTopics
    from barnabas.broker.partitions.directory_moves import DirectoryMoves
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.broker.partitions.throttles import Throttles
    from barnabas.broker.quotas.client_quotas import ClientQuotas
    from barnabas.broker.runtime.watched_clock import WatchedClock
    from barnabas.broker.security.authorization import Authorizer
    from barnabas.broker.security.known_tokens import KnownTokens
    from barnabas.clock import Random
    from barnabas.cluster.image import ClusterImage
    from barnabas.cluster.store import MetadataStore
    from barnabas.config import BrokerConfig
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.transactions import Transactions
    from barnabas.replication.fetch_session import FetchSessions


class Node(NamedTuple):
    """Contains everything that a handler can use. It is created after all other parts."""

    current_config: CurrentConfig
    clock: WatchedClock
    random: Random
    store: MetadataStore
    view: ClusterView
    authorizer: Authorizer
    auto_advertised: frozenset[str]
    """The names of the listeners that have no configured address to advertise."""
    replicas: Replicas
    converter: BatchConverter
    throttles: Throttles
    moves: DirectoryMoves
    fetch_sessions: FetchSessions
    fetch_max_bytes: int
    """The maximum number of bytes of records in a Fetch response (`fetch.max.bytes`, which cannot
    be changed dynamically).
    """
    control: ControlPlane
    deleted_topics: DeletedTopics
    coordinators: Coordinators
    verification: Verification
    producer_ids: ProducerIds
    internal_topics: InternalTopics
    controller: ControllerRunner
    dynamic_config: DynamicConfig
    quotas: ClientQuotas
    known_tokens: KnownTokens

    @property
    def broker_id(self) -> int:
        return self.view.broker_id

    @property
    def config(self) -> BrokerConfig:
        """The current configuration."""
        return self.current_config.value

    @property
    def image(self) -> ClusterImage:
        """The cluster metadata as most recently received from the controller."""
        return self.view.image

    @property
    def groups(self) -> Shards[Groups]:
        """The partitions of the group coordinator on this broker."""
        return self.coordinators.groups

    @property
    def transactions(self) -> Shards[Transactions]:
        """The partitions of the transaction coordinator on this broker."""
        return self.coordinators.transactions

    @property
    def marker_append(self) -> MarkerAppend:
        """Appends markers to partitions led by this broker."""
        return self.coordinators.marker_append
