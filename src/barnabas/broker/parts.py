"""Builds a broker from its parts, from top to bottom. Each part uses only the parts above it.

    ground      configuration, seams, clock, view, logs, metadata store
    partitions  the replicas on this broker, and the work that depends on their roles
    control     the requests that this broker and the controller send to each other
    network     connections, and the node that handlers get

Nothing is assigned to a part after it has been constructed. If two parts need each other, they are
connected by a queue. `AlterPartitionQueue` connects the replicas and the controller, and so does
the queue in `DirectoryFailures`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.configs.current_config import CurrentConfig
from barnabas.broker.configs.dynamic_config import (
    BrokerConfigListener,
    DynamicConfig,
    apply_log_level,
)
from barnabas.broker.configs.inter_broker_version import NAME as INTER_BROKER_VERSION
from barnabas.broker.configs.inter_broker_version import writes_isrs
from barnabas.broker.controller.controller_settings import ControllerSettings
from barnabas.broker.controller.runner import ControllerRunner
from barnabas.broker.controller.stray_logs import StrayLogs
from barnabas.broker.coordinator.coordinators import Coordinators
from barnabas.broker.coordinator.internal_topics import InternalTopics
from barnabas.broker.coordinator.producer_ids import ProducerIds
from barnabas.broker.coordinator.verification import Verification
from barnabas.broker.network.acceptor import Acceptor
from barnabas.broker.network.connections import Connections
from barnabas.broker.network.idle_connections import IdleConnections
from barnabas.broker.network.listeners import (
    Listener,
    advertised_endpoints,
)
from barnabas.broker.network.request_memory import RequestMemory
from barnabas.broker.network.request_metrics import RequestMetrics
from barnabas.broker.network.router import Router, waiting_families
from barnabas.broker.node import Node
from barnabas.broker.partitions.alter_partition_queue import AlterPartitionQueue
from barnabas.broker.partitions.batch_conversion import BatchConverter
from barnabas.broker.partitions.cleaner_parts import CleanerParts
from barnabas.broker.partitions.cleaner_schedule import CleanerSchedule
from barnabas.broker.partitions.control_plane import ControlPlane
from barnabas.broker.partitions.deleted_topics import DeletedTopics
from barnabas.broker.partitions.directory_failure import DirectoryFailures, FailureReports
from barnabas.broker.partitions.directory_moves import DirectoryMoves
from barnabas.broker.partitions.housekeeping import Housekeeping
from barnabas.broker.partitions.replica_removal import ReplicaRemoval
from barnabas.broker.partitions.replicas import Replicas
from barnabas.broker.partitions.role_changes import RoleChanges
from barnabas.broker.partitions.throttles import Throttles
from barnabas.broker.partitions.unplaced_logs import UnplacedLogs
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.stored_quotas import StoredQuotas
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.broker.seams import Seams
from barnabas.broker.security.authorization import Authorizer
from barnabas.broker.security.known_tokens import KnownTokens
from barnabas.clock import Random
from barnabas.cluster.config_changes import USERS
from barnabas.cluster.store import MetadataStore
from barnabas.config import BrokerConfig
from barnabas.events import EventLog
from barnabas.metrics import Family, Registry
from barnabas.named_tuple import NamedTuple
from barnabas.replication.fetch_session import FetchSessions
from barnabas.storage.store import LogStore

if TYPE_CHECKING:
    from barnabas.broker.inter_broker.controlled_shutdown import ControlledShutdown
    from barnabas.broker.network.request_faults import RequestFaults
    from barnabas.broker.quotas.ip_quotas import IpQuotas
    from barnabas.broker.quotas.measures import Windows
    from barnabas.broker.quotas.throttle_events import ThrottleEvents
    from barnabas.broker.replication.alter_partition import AlterPartition, IsrApproval
    from barnabas.broker.security.sasl_listener import SaslListener
    from barnabas.broker.security.server_tls import ServerTls
    from barnabas.security.acl import Principal

_MAX_SESSION_ID = 2**31 - 1


class Bound(NamedTuple):
    """A listener that is bound to its address, and the actual port."""

    listener: Listener
    socket: socket.socket
    tls: ServerTls | None = None


class Ground(NamedTuple):
    """The configuration, seams and stores, which exist before any part of a broker is created."""

    config: BrokerConfig
    seams: Seams
    clock: WatchedClock
    view: ClusterView
    logs: LogStore
    store: MetadataStore
    authorizer: Authorizer
    failure: asyncio.Future[str]
    metrics: Registry
    """The registry where every part declares its metrics."""
    events: EventLog
    """The log where every part records decisions that clients can notice."""


class InterBroker:
    """The connections to other brokers and the parts that use these connections. Not used on a
    standalone broker."""

    def __init__(
        self, ground: Ground, config: CurrentConfig, replicas: Replicas, throttles: Throttles
    ) -> None:
        # Imported here, so that a standalone broker does not load it.
        from barnabas.broker.coordinator.marker_channel import MarkerChannels
        from barnabas.broker.coordinator.verifier import Verifier
        from barnabas.broker.inter_broker.peer_links import PeerLinks
        from barnabas.broker.inter_broker.peers import Peers
        from barnabas.broker.replication.fetcher_parts import FetcherParts
        from barnabas.broker.replication.fetchers import Fetchers

        view = ground.view
        peers = self.peers = Peers(config, ground.clock, ground.seams.random)
        self.links = PeerLinks(view, peers, "broker")
        # Verification may have to wait for a coordinator's disk, which must not delay ISR changes.
        self.coordinator_links = PeerLinks(view, peers, "transactions")
        self.fetchers = Fetchers(FetcherParts(view, config, replicas, throttles, peers))
        ground.metrics.declare(self.fetchers.families)
        self.verifier = Verifier(view, config, self.coordinator_links)
        self.markers = MarkerChannels(config, self.coordinator_links)

    def brokers_changed(self) -> None:
        self.links.drop_old()
        self.coordinator_links.drop_old()

    def topics_deleted(self, names: Sequence[str]) -> None:
        """Do nothing, because fetchers and markers learn in other ways that a topic was deleted."""

    async def stop(self) -> None:
        self.markers.close()
        await self.fetchers.stop()
        self.links.close()
        self.coordinator_links.close()


class PartitionParts:
    """The replicas hosted by this broker, and the work that depends on their roles."""

    def __init__(self, ground: Ground, config: CurrentConfig) -> None:
        seams, clock, view, logs = ground.seams, ground.clock, ground.view, ground.logs
        self.threads = seams.threads()
        self.throttles = Throttles(config.value)
        self.replicas = Replicas(
            view, logs, config, clock, ground.metrics, self.threads, ground.events
        )
        others = self.others = (
            InterBroker(ground, config, self.replicas, self.throttles) if view.has_peers else None
        )
        self.coordinators = Coordinators(
            view,
            config,
            clock,
            self.replicas,
            None if others is None else others.verifier,
            None if others is None else others.markers,
        )
        ground.metrics.declare(self.coordinators.families)
        listeners = (
            (self.coordinators,)
            if others is None
            else (self.coordinators, others.verifier, others.fetchers)
        )
        self.unplaced = UnplacedLogs()
        self.proposals = AlterPartitionQueue(ground.metrics)
        self.failures = DirectoryFailures(ReplicaRemoval(self.replicas, listeners))
        self.moves = DirectoryMoves(self.failures, listeners, self.throttles, seams.random)
        self.role_changes = RoleChanges(
            self.replicas,
            self.failures,
            self.proposals,
            (*listeners, self.moves),
            self.unplaced,
            seams.keep_objects,
        )
        self.housekeeping = Housekeeping(
            config, clock, logs, self.replicas, self.failures, seams.files
        )
        self.cleaner = CleanerSchedule(
            CleanerParts(
                config, clock, self.replicas, self.failures, seams.files, seams.cleans_inline
            )
        )


class ControllerParts:
    """The parts that exchange requests between this broker and the controller, which may be local
    or remote.
    """

    def __init__(self, ground: Ground, config: CurrentConfig, partitions: PartitionParts) -> None:
        clock, view, logs, store = ground.clock, ground.view, ground.logs, ground.store
        others, coordinators = partitions.others, partitions.coordinators
        self.control = ControlPlane(
            view,
            partitions.replicas,
            partitions.role_changes,
            (coordinators,) if others is None else (others, coordinators),
        )
        self.strays = StrayLogs(logs.logs)
        self.controller = ControllerRunner(
            store,
            view,
            clock,
            ground.seams.random,
            ControllerSettings.of(config.value),
            self.control.handle,
            partitions.replicas.latest_epoch_of,
            None if others is None else others.peers,
            partitions.replicas.on_registered,
            strays=self.strays,
            metrics=ground.metrics,
            events=ground.events,
        )
        self.failure_reports = FailureReports(
            partitions.failures.queue, logs, self.controller.replicas_offline, ground.failure
        )
        self.alter_partition: AlterPartition | None = None
        self.shutdown: ControlledShutdown | None = None
        if others is None:
            return
        # Imported here, so that a standalone broker does not load it.
        from barnabas.broker.inter_broker.controlled_shutdown import ControlledShutdown
        from barnabas.broker.replication.alter_partition import AlterPartition, ControllerApproval
        from barnabas.broker.replication.zk_alter_partition import ZkAlterPartition

        approval: IsrApproval
        # AlterPartition is used from inter.broker.protocol.version 2.7 on (KIP-497, RE-9).
        if writes_isrs(config.str(INTER_BROKER_VERSION)):
            approval = ZkAlterPartition(view, store, clock)
        else:
            approval = ControllerApproval(view, config, self.controller, others.links)
        self.alter_partition = AlterPartition(partitions.proposals, approval, ground.events)
        self.shutdown = ControlledShutdown(
            view, config, clock, store, self.controller, others.links
        )


class NetworkParts:
    """The parts that serve clients, which are the listeners, the connections, and the node that is
    passed to handlers.
    """

    def __init__(
        self,
        ground: Ground,
        config: CurrentConfig,
        partitions: PartitionParts,
        control: ControllerParts,
        bound: Sequence[Bound],
    ) -> None:
        seams, clock, view, store = ground.seams, ground.clock, ground.view, ground.store
        self.connections = Connections(config.value, clock, ground.events, seams.descriptors)
        ground.metrics.declare(self.connections.families)
        self.tls = [each.tls for each in bound if each.tls is not None]
        self.dynamic_config = DynamicConfig(
            store,
            view,
            config,
            clock,
            partitions.replicas,
            control.controller,
            (
                *_config_listeners(partitions, control, self.connections),
                *(each.configure for each in self.tls),
            ),
            [each.check for each in self.tls],
        )
        if self.tls:
            from barnabas.broker.security.server_tls import certificate_families

            ground.metrics.declare(partial(certificate_families, self.tls))
        self.quotas = ClientQuotas(config.value, clock, partial(_throttle_events, ground))
        ip_quotas = self.connections.ip_quotas
        ground.metrics.declare(partial(_quota_families, self.quotas, ip_quotas, clock))
        stored_quotas = StoredQuotas(store, self.quotas, ip_quotas)
        for kind in stored_quotas.kinds:
            self.dynamic_config.follow(kind, stored_quotas)
        self.endpoints, auto_advertised = advertised_endpoints(
            config.value, [each.listener for each in bound]
        )
        self.node = self._make_node(ground, partitions, control, auto_advertised)
        self.memory = RequestMemory(
            config.value, seams.memory_bytes(), clock, self.connections.complaints
        )
        sasl_listeners = self._make_sasl_listeners(ground, config.value, bound)
        requests = RequestMetrics(ground.metrics)
        self.routers = [
            Router(self.node, each.listener, self.memory, self.connections, requests, sasl)
            for each, sasl in zip(bound, sasl_listeners, strict=True)
        ]
        ground.metrics.declare(partial(waiting_families, self.routers))
        self.acceptors = [
            Acceptor(each.socket, each.listener.name, router, self.connections, each.tls)
            for each, router in zip(bound, self.routers, strict=True)
        ]
        self.idle_connections = IdleConnections(config, clock, self.routers)

    def _make_sasl_listeners(
        self, ground: Ground, config: BrokerConfig, bound: Sequence[Bound]
    ) -> list[SaslListener | None]:
        """Build the authentication for every listener that uses SASL. Raises ConfigError."""
        if not any(each.listener.protocol.uses_sasl for each in bound):
            return [None] * len(bound)
        # Imported here so that a broker without SASL never loads it.
        from barnabas.broker.security.delegation_tokens import DelegationTokens, token_key
        from barnabas.broker.security.sasl_listener import SaslListener
        from barnabas.broker.security.scram_credentials import ScramCredentials

        tokens = None
        if token_key(config) is not None:
            tokens = DelegationTokens(ground.store, config, ground.clock)
        # All listeners use the SCRAM credentials and delegation tokens of the cluster.
        credentials = ScramCredentials(ground.store, tokens)
        self.dynamic_config.follow(USERS, credentials)
        if config.bool("barnabas.connections.end.with.user"):
            credentials.set_deletion_listener(self._end_sessions)
        sasl_listeners: list[SaslListener | None] = []
        for each in bound:
            sasl = None
            if each.listener.protocol.uses_sasl:
                sasl = SaslListener(config, each.listener, ground.clock, credentials)
                self.dynamic_config.add_listener(sasl.configure, sasl.check)
            sasl_listeners.append(sasl)
        return sasl_listeners

    def _make_node(
        self,
        ground: Ground,
        partitions: PartitionParts,
        control: ControllerParts,
        auto_advertised: frozenset[str],
    ) -> Node:
        """Collect everything that handlers can use in a node."""
        seams, view, store = ground.seams, ground.view, ground.store
        config = partitions.replicas.config
        replicas, coordinators, others = (
            partitions.replicas,
            partitions.coordinators,
            partitions.others,
        )
        return Node(
            current_config=config,
            clock=ground.clock,
            random=seams.random,
            store=store,
            view=view,
            authorizer=ground.authorizer,
            auto_advertised=auto_advertised,
            replicas=replicas,
            converter=BatchConverter(walks_all=ground.config.verifies_all_records),
            throttles=partitions.throttles,
            moves=partitions.moves,
            fetch_sessions=FetchSessions(
                config.int("max.incremental.fetch.session.cache.slots"),
                partial(_new_session_id, seams.random),
            ),
            fetch_max_bytes=config.int("fetch.max.bytes"),
            control=control.control,
            deleted_topics=DeletedTopics(view, store),
            coordinators=coordinators,
            verification=Verification(
                config, replicas, coordinators, None if others is None else others.verifier
            ),
            producer_ids=ProducerIds(control.controller.allocate_producer_id_block),
            internal_topics=InternalTopics(control.controller.auto_create_topics),
            controller=control.controller,
            dynamic_config=self.dynamic_config,
            quotas=self.quotas,
            known_tokens=KnownTokens(),
        )

    def _end_sessions(self, principal: Principal, mechanism: str) -> None:
        for router in self.routers:
            router.end_sessions(principal, mechanism)

    def inject(self, faults: RequestFaults | None) -> None:
        """Consult `faults` for every request on all listeners.

        None stops the injection of faults.
        """
        for router in self.routers:
            router.inject(faults)

    def abort(self, is_meant: Callable[[str | None], bool]) -> None:
        """Close all connections whose last request had this client id."""
        for router in self.routers:
            router.abort(is_meant)


def _config_listeners(
    partitions: PartitionParts, control: ControllerParts, connections: Connections
) -> Sequence[BrokerConfigListener]:
    """Return the methods that must be called when broker settings change."""
    others = partitions.others
    return (
        partitions.replicas.broker_config_changed,
        partitions.throttles.configure,
        control.controller.configure,
        apply_log_level,
        connections.configure,
        *(() if others is None else (others.fetchers.configure,)),
    )


class Parts(NamedTuple):
    """All parts of a broker, in the order of their construction."""

    partitions: PartitionParts
    control: ControllerParts
    network: NetworkParts

    @classmethod
    def make(cls, ground: Ground, bound: Sequence[Bound]) -> Parts:
        config = CurrentConfig(ground.config)
        partitions = PartitionParts(ground, config)
        control = ControllerParts(ground, config, partitions)
        return cls(partitions, control, NetworkParts(ground, config, partitions, control, bound))


def _quota_families(
    quotas: ClientQuotas, ip_quotas: IpQuotas, clock: WatchedClock
) -> Iterable[Family]:
    if not quotas.is_active and not ip_quotas.is_active:
        return ()
    from barnabas.broker.quotas.quota_families import quota_families  # few brokers need it

    return quota_families(quotas, ip_quotas, clock.monotonic_ms())


def _throttle_events(ground: Ground, windows: Windows) -> ThrottleEvents:
    from barnabas.broker.quotas.throttle_events import ThrottleEvents  # few brokers need it

    return ThrottleEvents(ground.events, ground.clock, windows, ground.metrics)


def _new_session_id(random: Random) -> int:
    return random.below(_MAX_SESSION_ID) + 1
