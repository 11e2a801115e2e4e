"""What a handler gets: the broker's parts, and the request's context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.coordination.coordinators import Coordinators
from barnabas.broker.partitions.batch_conversion import Preparer
from barnabas.broker.partitions.control_plane import Control
from barnabas.broker.partitions.deleted_topics import GoneTopics
from barnabas.broker.partitions.throttles import Throttles
from barnabas.broker.security.authorization import (
    REQUIRED,
    AllowAll,
    Needs,
    Operation,
    ResourceType,
)
from barnabas.cluster.loading import load_configs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.configs.dynamic_config import DynamicConfig
    from barnabas.broker.controller.runner import ControllerRunner
    from barnabas.broker.coordination.internal_topics import InternalTopics
    from barnabas.broker.coordination.marker_channel import MarkerChannels
    from barnabas.broker.coordination.producer_ids import ProducerIds
    from barnabas.broker.coordination.shards import Shards
    from barnabas.broker.coordination.verifier import Verifier
    from barnabas.broker.network.client_connection import ClientConnection
    from barnabas.broker.partitions.replicas import Replicas
    from barnabas.broker.runtime.watched_clock import WatchedClock
    from barnabas.clock import Random
    from barnabas.cluster.image import BrokerImage, ClusterImage
    from barnabas.cluster.store import MetadataStore
    from barnabas.config import BrokerConfig
    from barnabas.coordinator.groups import Groups
    from barnabas.coordinator.transactions import Transactions
    from barnabas.protocol.api import Api
    from barnabas.replication.fetch_session import FetchSessions


class Node:
    """One broker's parts, as its handlers see them."""

    __slots__ = (
        "authorizer",
        "auto_advertised",
        "broker_id",
        "brokers_listeners",
        "clock",
        "config",
        "config_listeners",
        "control",
        "controller",
        "coordinators",
        "dynamic_config",
        "ends_with_all",
        "fetch_sessions",
        "gone_topics",
        "internal_topics",
        "markers",
        "preparer",
        "producer_ids",
        "random",
        "replicas",
        "store",
        "throttles",
        "verifier",
        "view",
    )

    def __init__(
        self,
        config: BrokerConfig,
        clock: WatchedClock,
        view: ClusterView,
        replicas: Replicas,
        controller: ControllerRunner,
        producer_ids: ProducerIds,
    ) -> None:
        self.config = config  # replaced as a whole; `set_config` tells who has to know
        self.config_listeners: list[Callable[[BrokerConfig], None]] = []
        self.brokers_listeners: list[Callable[[], None]] = []
        """Called when the image has been made anew: brokers may have come or gone."""
        self.dynamic_config: DynamicConfig
        self.fetch_sessions: FetchSessions
        self.internal_topics: InternalTopics
        self.random: Random
        self.store: MetadataStore
        self.markers: MarkerChannels | None = None
        self.verifier: Verifier | None = None
        self.ends_with_all = False
        """Whether all brokers are being stopped: that others are gone is no trouble then."""
        self.clock = clock
        self.view = view
        self.replicas = replicas
        self.controller = controller
        self.producer_ids = producer_ids
        self.preparer = Preparer(walks_all=config.bool("barnabas.verify.all.records"))
        self.throttles = Throttles(config)
        self.config_listeners.append(self.throttles.configure)
        self.coordinators = Coordinators(self)
        self.control = Control(self)
        self.gone_topics = GoneTopics(self)
        self.broker_id = config.int("broker.id")
        self.authorizer = AllowAll()
        # Listener names for which nobody configured an address to advertise.
        self.auto_advertised: frozenset[str] = frozenset()

    @property
    def image(self) -> ClusterImage:
        """The cluster as the controller described it last."""
        return self.view.image

    @property
    def groups(self) -> Shards[Groups]:
        """The group coordinator's partitions on this broker."""
        return self.coordinators.groups

    @property
    def transactions(self) -> Shards[Transactions]:
        """The transaction coordinator's partitions on this broker."""
        return self.coordinators.transactions

    async def topic_configs(self, names: Iterable[str]) -> dict[str, Mapping[str, str]]:
        """What these topics' own configs set: as the image has it, else as the store does.

        The requests of a controller on another broker do not carry it.
        """
        configs: dict[str, Mapping[str, str]] = {}
        for name in names:
            known = self.image.topics.get(name)
            if known is None:
                configs.update(await load_configs_of(self.store, [name]))
            else:
                configs[name] = known.config
        return configs

    def set_config(self, config: BrokerConfig) -> None:
        """A dynamic setting has changed: from now on this is the broker's configuration."""
        self.config = config
        self.replicas.update_broker_config(config)
        for listener in self.config_listeners:
            listener(config)


class Context:
    """One request: the broker's parts, the client's connection, the API and its version."""

    __slots__ = ("api", "client", "client_id", "node", "version")

    def __init__(
        self, node: Node, client: ClientConnection, api: Api, version: int, client_id: str | None
    ) -> None:
        self.node = node
        self.client = client
        self.api = api
        self.version = version
        self.client_id = client_id

    def allowed(self, resource_name: str) -> bool:
        """Whether the client may do what this API needs, on the resource of that name."""
        needs = REQUIRED[self.api.stem]
        client = self.client
        return needs is None or self.node.authorizer.allows(
            client.principal, client.address, needs, resource_name
        )

    def allowed_to(
        self, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        """Whether the client may do what the API's own row does not cover (create a topic by asking
        for its metadata)."""
        client = self.client
        return self.node.authorizer.allows(
            client.principal,
            client.address,
            Needs(operation, resource_type),
            resource_name,
        )

    def address_of(self, broker: BrokerImage) -> tuple[str, int]:
        """Host and port at which this client reaches a broker, through the listener it came by.

        Without a configured address it is the one through which the client came: that is right from
        another host and from inside a container alike.
        """
        client = self.client
        endpoint = broker.endpoints[0]
        for candidate in broker.endpoints:
            if candidate.listener == client.listener:
                endpoint = candidate
        if broker.broker_id == self.node.broker_id and client.listener in self.node.auto_advertised:
            return client.local_host or endpoint.host, endpoint.port
        return endpoint.host, endpoint.port
