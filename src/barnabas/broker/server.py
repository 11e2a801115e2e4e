"""The composition root: builds, starts and stops everything a broker is. Read it first.

    bind sockets -> open logs (recover) -> open the metadata store -> register, be elected or not
        -> LeaderAndIsr / UpdateMetadata make replicas and the image -> serve

and backwards at the stop. Binding comes first, so that a taken port costs nothing; a broker that is
alone accepts last, so that nobody is answered before the answer is known. One of a cluster accepts
before it registers, since the controller may be another broker and has to reach it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.configs.dynamic_config import DynamicConfig, apply_log_level
from barnabas.broker.configs.inter_broker_version import NAME as INTER_BROKER_VERSION
from barnabas.broker.configs.inter_broker_version import writes_isrs
from barnabas.broker.context import Node
from barnabas.broker.controller.registration import ensure_base
from barnabas.broker.controller.runner import ControllerRunner
from barnabas.broker.coordination.internal_topics import InternalTopics
from barnabas.broker.coordination.producer_ids import ProducerIds
from barnabas.broker.inter_broker.inter_broker import Neighbours
from barnabas.broker.inter_broker.peers import Peers
from barnabas.broker.network.acceptor import Acceptor
from barnabas.broker.network.connections import Connections
from barnabas.broker.network.listeners import (
    Listener,
    advertised_endpoints,
    configured_listeners,
    exposures,
    socket_options,
)
from barnabas.broker.network.router import Router
from barnabas.broker.partitions.cleaner_schedule import Cleaning
from barnabas.broker.partitions.housekeeping import Housekeeping
from barnabas.broker.partitions.replicas import Replicas
from barnabas.broker.runtime.disk_threads import LOOP_THREADS
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.broker.seams import Machine, this_machine
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.image import BrokerImage, ClusterImage
from barnabas.cluster.store import MetadataStore
from barnabas.config import BrokerConfig
from barnabas.net.memory import MemoryPool
from barnabas.replication.fetch_session import FetchSessions
from barnabas.storage.loading import Loading
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.metrics.listener import MetricsListener

_log = logging.getLogger(__name__)

_MAX_SESSION_ID = 2**31 - 1


class Server:
    """One broker. `start` and `stop` are called once each, on the loop that serves it."""

    def __init__(
        self,
        config: BrokerConfig,
        machine: Machine | None = None,
        store: MetadataStore | None = None,
    ) -> None:
        """`store`: what this broker shares with others; closed when the broker stops. Else it is
        the ZooKeeper of the configuration, or a store of its own where that names none."""
        self.config = config
        self._machine = machine or this_machine()
        self.clock = WatchedClock(self._machine.clock)
        self.random = self._machine.random
        writes_isrs(config.str(INTER_BROKER_VERSION))  # one that is none is said at once
        self.broker_id = config.int("broker.id")
        has_peers = store is not None or bool(config.str("zookeeper.connect"))
        self._view = ClusterView(self.broker_id, has_peers=has_peers)
        self.log_dirs = [Path(path) for path in config.log_directories()]
        self.listeners: list[Listener] = []  # as bound, with their real ports
        self._sockets: list[socket.socket] = []
        self._acceptors: list[Acceptor] = []
        self._routers: list[Router] = []
        self._logs: LogStore | None = None
        self._loading = Loading(self.clock)
        self._metadata = store
        self._neighbours: Neighbours | None = None
        self._controller: ControllerRunner | None = None
        self._housekeeping: Housekeeping | None = None
        self._cleaning: Cleaning | None = None
        self._metrics: MetricsListener | None = None
        self._replicas: Replicas | None = None
        self._node: Node | None = None
        self._lanes = LOOP_THREADS
        self._is_dynamic = False  # the tree's settings are in force, and followed
        self._telling: set[asyncio.Task[None]] = set()
        self.failure: asyncio.Future[str] | None = None
        """Set by `start`; done, with the reason, when this broker cannot go on."""

    @property
    def port(self) -> int:
        """The first listener's port."""
        return self.listeners[0].port

    @property
    def node(self) -> Node:
        assert self._node is not None, "the server has not been started"
        return self._node

    async def start(self) -> None:
        """Be ready to serve, or raise ConfigError / OSError and hold nothing."""
        self.failure = asyncio.get_running_loop().create_future()
        try:
            self._bind()
            await self._bind_metrics()
            self._open_logs()
            await self._open_metadata()
            self._build()
            if self._view.has_peers:
                self._serve()
                await self._join_cluster()
            else:
                await self._join_cluster()
                self._serve()
            if self._metrics is not None:
                await self._metrics.start()
        except BaseException:
            await self.stop()
            raise

    def stop_loading(self) -> None:
        """Have `start` raise LoadingStopped, if it is still loading logs; suits a signal's handler,
        which Python calls in the middle of that."""
        self._loading.is_stopped = True

    def _bind(self) -> None:
        for listener in configured_listeners(self.config):
            backlog = self.config.int("socket.listen.backlog.size")
            for sock in self._machine.bind(listener, backlog):
                for option, size in socket_options(self.config):
                    sock.setsockopt(socket.SOL_SOCKET, option, size)
                self._sockets.append(sock)
                self.listeners.append(listener._replace(port=sock.getsockname()[1]))

    async def _bind_metrics(self) -> None:
        port = self.config.int("barnabas.metrics.port")
        if port:
            # Only here, so that a broker of which nobody asks this loads nothing for it.
            from barnabas.broker.metrics.listener import MetricsListener
            from barnabas.broker.metrics.page import page

            def this_page() -> bytes:
                neighbours = self._neighbours
                return page(self.node, None if neighbours is None else neighbours.fetchers)

            self._metrics = MetricsListener(this_page)
            await self._metrics.bind(self.listeners[0].host, port)

    def _open_logs(self) -> None:
        self._logs = LogStore(
            self._machine.files, self.broker_id, self.config.int("producer.id.expiration.ms")
        )
        # With the broker's own settings, until LeaderAndIsr tells a topic's.
        self._logs.begin(
            self.log_dirs, self.config.log_config(), self.clock.wall_ms(), self._loading
        )

    async def _open_metadata(self) -> None:
        if self._metadata is None and self._view.has_peers:
            # Only here, so that a broker which is alone loads nothing of ZooKeeper's client.
            from barnabas.cluster.zookeeper import ZooKeeperStore
            from barnabas.cluster.zookeeper_settings import settings_from

            self._metadata = await ZooKeeperStore.open(settings_from(self.config))
        elif self._metadata is None:
            self._metadata = EmbeddedStore.open(self.log_dirs[0])

    def _build(self) -> None:
        assert self._logs is not None and self._metadata is not None
        self._lanes = self._machine.lanes()
        self._replicas = Replicas(
            self._view,
            self._logs,
            self.config,
            self.clock,
            self._lanes,
            self._machine.keep_objects,
        )
        self._replicas.on_directory_failed = self._directory_failed
        peers = Peers(self.config, self.clock, self.random) if self._view.has_peers else None
        self._controller = ControllerRunner(
            self._metadata,
            self.broker_id,
            self.clock,
            self.random,
            lambda request: self.node.control.obey(request),
            latest_epoch_of=self._latest_epoch_of,
            peers=peers,
        )
        self._controller.on_registered = self._registered
        self._node = Node(
            self.config,
            self.clock,
            self._view,
            self._replicas,
            self._controller,
            ProducerIds(self._controller),
        )
        self._controller.seen = lambda: self._view.image
        self._controller.configure(self.config)
        self._node.config_listeners.append(self._controller.configure)
        self._node.random = self.random
        self._node.store = self._metadata
        self._node.internal_topics = InternalTopics(self._controller)
        self._replicas.on_leading = self._node.coordinators.leading
        self._replicas.on_left = self._node.coordinators.left
        self._node.fetch_sessions = FetchSessions(
            self.config.int("max.incremental.fetch.session.cache.slots"),
            lambda: self.random.below(_MAX_SESSION_ID) + 1,
        )
        self._node.config_listeners.append(apply_log_level)
        self._node.dynamic_config = DynamicConfig(self._metadata, self._node)
        if peers is not None:
            self._neighbours = Neighbours(self._node, peers)

    async def _join_cluster(self) -> None:
        logs, controller = self._logs, self._controller
        assert logs is not None and controller is not None and self._replicas is not None
        endpoints, self.node.auto_advertised = advertised_endpoints(self.config, self.listeners)
        broker = BrokerImage(
            self.broker_id,
            endpoints,
            self.config.str("broker.rack") or None,
            epoch=0,
            may_have_lost=await self._may_have_lost(logs, controller),
        )
        if self._view.has_peers:
            # The controller may have something to say before `start` returns.
            assert self._metadata is not None
            cluster_id = await ensure_base(self._metadata, logs.cluster_id, self.random)
            self._view.update(self._view.image._replace(cluster_id=cluster_id))
        logs.set_cluster_id(await controller.start(broker, logs.cluster_id))
        await self._view.until(self._is_known)
        logs.unknown_to(controller.known_partitions)
        if self._replicas.offline:
            await controller.replicas_offline(sorted(self._replicas.offline))
        await self.node.dynamic_config.start()
        self._is_dynamic = True

    async def _may_have_lost(self, logs: LogStore, controller: ControllerRunner) -> bool:
        """Whether what others count on in these logs may be gone: then it stays so until each of
        its partitions has a leader that was elected in this knowledge."""
        if not self._view.has_peers:
            return False
        assert self._replicas is not None
        if not logs.begins_whole(self._machine.boot_id()):
            self._replicas.unplaced = set(await controller.hosted())
        if not self._replicas.unplaced:
            logs.loss_is_known(self._machine.boot_id())
            return False
        self._replicas.on_all_placed = self._loss_is_known
        return True

    def _loss_is_known(self) -> None:
        assert self._logs is not None and self._controller is not None
        self._logs.loss_is_known(self._machine.boot_id())
        self._tell(self._controller.is_whole())

    def _tell(self, work: Coroutine[Any, Any, None]) -> None:
        """Have the controller, or the store, told of something that nobody waits for."""
        task = asyncio.get_running_loop().create_task(work)
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def _registered(self, broker: BrokerImage) -> None:
        """The session has begun, or another one after it: requests of an older one are refused."""
        self.node.replicas.broker_epoch = broker.epoch
        self._view.registered(broker.epoch)

    def _is_known(self, image: ClusterImage) -> bool:
        """Whether the controller knows of this registration, and has said so.

        What was meant for an earlier one was refused; over the wire no epoch comes with a name.
        """
        return self.broker_id in image.brokers

    async def knows_brokers(self, broker_ids: Iterable[int]) -> None:
        """Return when this broker has heard of all of these."""
        wanted = set(broker_ids)
        await self._view.until(lambda image: wanted <= image.brokers.keys())

    def _serve(self) -> None:
        assert self._logs is not None and self._replicas is not None
        memory = MemoryPool(self.config.int("queued.max.request.bytes"))
        connections = Connections(self.config, self.clock, self._machine.descriptors)
        self.node.config_listeners.append(connections.configure)
        for listener, sock in zip(self.listeners, self._sockets, strict=True):
            router = Router(self.node, listener.name, memory, connections)
            acceptor = Acceptor(sock, listener.name, router, connections)
            self._routers.append(router)
            self._acceptors.append(acceptor)
            acceptor.start()
        self._sockets = []  # the acceptors close them from here on
        self._housekeeping = Housekeeping(
            self.config, self.clock, self._logs, self._replicas, self._routers
        )
        self.node.config_listeners.append(self._housekeeping.configure)
        self.clock.start()
        self._housekeeping.start()
        self._cleaning = Cleaning(
            self.config,
            self.clock,
            self._replicas,
            self._machine.files,
            inline=self._machine.cleans_inline,
        )
        self.node.config_listeners.append(self._cleaning.configure)
        self._cleaning.start()
        for warning in (*self.config.warnings, *exposures(self.listeners)):
            _log.warning("%s", warning)

    def _latest_epoch_of(self, name: TopicPartition) -> int:
        """What the log knows of leader epochs that the metadata has lost (ZK-6); -1: no log."""
        assert self._logs is not None
        log = self._logs.logs.get(name)
        return -1 if log is None else log.epochs.latest

    def _directory_failed(self, directory: Path, names: Sequence[TopicPartition]) -> None:
        """Go on without a log directory, or stop if it was the last one (ST-10)."""
        assert self._logs is not None and self._controller is not None
        assert self.failure is not None
        if not self._logs.online_directories:
            if not self.failure.done():
                self.failure.set_result(
                    f"no log directory is left, the last one was {directory}: see the log above, "
                    "repair the disk and start again"
                )
            return
        self._tell(self._controller.replicas_offline(names))

    async def ends_with_all(self) -> None:
        """Prepare a stop of all brokers: that they go, one by one, moves and troubles nobody."""
        self.node.ends_with_all = True
        assert self._controller is not None
        await self._controller.stop()

    async def stop(self, *, gives_away: bool = True) -> None:
        """A clean stop: the next start needs no recovery. Safe after a start that failed.

        With `gives_away` others lead first what this broker leads.
        """
        if self._neighbours is not None and self._is_dynamic and gives_away:
            await self._neighbours.leave()
        if self._metrics is not None:
            self._metrics.close()
        if self._cleaning is not None:
            await self._cleaning.stop()
        if self._housekeeping is not None:
            await self._housekeeping.stop()
        self.clock.stop()
        for acceptor in self._acceptors:
            acceptor.close()
        for router in self._routers:
            router.close()
        for sock in self._sockets:
            sock.close()
        await asyncio.sleep(0)  # lets the connections' own closing run before the logs go
        if self._is_dynamic:
            await self.node.dynamic_config.stop()
        if self._node is not None:
            self._node.coordinators.close()
        if self._neighbours is not None:
            await self._neighbours.stop()
        if self._controller is not None:
            await self._controller.stop()
        try:
            if self._logs is not None:
                self._close(self._logs)
        finally:
            self._lanes.close()
            if self._replicas is not None:
                self._replicas.postponed.close()
            if self._metadata is not None:
                await self._metadata.close()

    def _close(self, logs: LogStore) -> None:
        """Leave every directory clean that can be; then the first error is raised."""
        if self._replicas is not None:
            try:
                logs.checkpoint_high_watermarks(self._replicas.high_watermarks())
            except OSError as error:
                _log.error("the high watermarks are kept as they were: %s", error)
        logs.close()
