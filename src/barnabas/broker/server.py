"""Starts and stops a broker, which consists of the parts defined in `parts`.

    bind sockets -> open logs (recover) -> open the metadata store -> register, perhaps be elected
        -> LeaderAndIsr / UpdateMetadata create replicas and the image -> serve

When the broker is stopped, the order is reversed. The sockets are bound first so that startup fails
early if a port is in use. A standalone broker does not accept connections until it can answer every
request. A broker in a cluster accepts connections before it registers, because a controller on
another broker has to be able to reach it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.cluster_view import ClusterView
from barnabas.broker.configs.inter_broker_version import NAME as INTER_BROKER_VERSION
from barnabas.broker.configs.inter_broker_version import writes_isrs
from barnabas.broker.controller.registration import ensure_base
from barnabas.broker.listener_names import inter_broker_listener
from barnabas.broker.network.listeners import (
    Listener,
    configured_listeners,
    exposures,
    socket_options,
)
from barnabas.broker.node import Node
from barnabas.broker.parts import Bound, Ground, Parts
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.broker.seams import Seams, system_seams
from barnabas.broker.security.authorization import AllowAll, Authorizer
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.image import BrokerImage, ClusterImage, Endpoint
from barnabas.cluster.journal_copies import JOURNAL_NAME, accept_loss
from barnabas.cluster.store import MetadataStore
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.events import EventLog
from barnabas.metrics import Registry
from barnabas.storage.loading import Loading
from barnabas.storage.seen_time import read_seen_ms, write_seen_ms
from barnabas.storage.store import LogStore

if TYPE_CHECKING:
    from barnabas.broker.loop_delays import LoopDelays
    from barnabas.broker.metrics.process_metrics import ProcessMetrics
    from barnabas.broker.runtime.disk_pulse import DiskPulse
    from barnabas.broker.security.server_tls import ServerTls
    from barnabas.cluster.remote_store import RemoteStore
    from barnabas.net.metrics_listener import MetricsListener

_log = logging.getLogger(__name__)

_LOADING = "loading logs"
_SHUTTING_DOWN = "the broker is shutting down"
_STARTING = 1
_BROKER_STATES = {_LOADING: 2, "": 3, _SHUTTING_DOWN: 6}
"""The codes that Kafka uses for RECOVERY, RUNNING and PENDING_CONTROLLED_SHUTDOWN."""


class Server:
    """A broker. Call `start` and `stop` once each, on the event loop that serves it."""

    def __init__(
        self,
        config: BrokerConfig,
        seams: Seams | None = None,
        store: MetadataStore | None = None,
        *,
        first_users: Mapping[str, str] | None = None,
    ) -> None:
        """Create a broker that has not been started.

        `store` is the metadata store. Other brokers can share it, and it is closed when this broker
        stops. If `store` is not given, the broker uses the ZooKeeper in its configuration, or an
        embedded store if no ZooKeeper is configured. `first_users` maps users to passwords. If the
        store does not contain their credentials, these are created before any client authenticates.
        """
        writes_isrs(config.str(INTER_BROKER_VERSION))  # raises an error for an invalid version
        self.config = config
        self._seams = seams or system_seams()
        self.clock = WatchedClock(self._seams.clock)
        self.broker_id = config.int("broker.id")
        self.log_dirs = [Path(path) for path in config.log_directories()]
        self.listeners: list[Listener] = []  # the listeners that are bound, with their actual ports
        self._bound: list[Bound] = []
        self._view = ClusterView(
            self.broker_id,
            has_peers=store is not None or bool(config.str("zookeeper.connect")),
        )
        self._logs = LogStore(
            self._seams.files,
            self.broker_id,
            config.int("producer.id.expiration.ms"),
            config.int("num.recovery.threads.per.data.dir"),
        )
        self._loading = Loading(self.clock)
        self._store = store
        self._first_users = first_users
        self._authorizer: Authorizer = AllowAll()
        self.metrics = Registry()
        self.metrics.gauge(
            "kafka.server:type=KafkaServer,name=BrokerState",
            "1 starting, 2 loading logs, 3 running, 6 shutting down",
            self._broker_state,
        )
        self.events = EventLog(self.clock.wall_ms, self.metrics)
        self._delays: LoopDelays | None = None
        self._metrics_listener: MetricsListener | None = None
        self._process_metrics: ProcessMetrics | None = None
        self._parts: Parts | None = None
        self._unready = _LOADING
        self._is_dynamic = False  # whether dynamic configs are applied and watched
        self._whole: asyncio.Task[None] | None = None
        self._pulse: DiskPulse | None = None
        self.is_hung = False
        """Whether a log directory's disk hangs, which would make stopping hang as well."""
        self.failure: asyncio.Future[str] | None = None
        """Created by `start`. Completes, with the reason, when this broker cannot continue."""

    @property
    def port(self) -> int:
        """The first listener's port."""
        return self.listeners[0].port

    @property
    def seams(self) -> Seams:
        """The machine on which the broker runs."""
        return self._seams

    @property
    def parts(self) -> Parts:
        assert self._parts is not None, "the server has not been started"
        return self._parts

    @property
    def node(self) -> Node:
        return self.parts.network.node

    # --- start -----------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the broker, and return when it serves requests. When it raises ConfigError or
        OSError, everything has been released.
        """
        self.failure = asyncio.get_running_loop().create_future()
        try:
            self._bind()
            await self._bind_metrics()
            # Check the clock before opening the logs: a jump must not remove anything by age.
            self.clock.begin(read_seen_ms(self._seams.files, self.log_dirs))
            # Open the logs with the broker's defaults. LeaderAndIsr brings the topic configs.
            now_ms = self.clock.earliest_wall_ms()
            self._logs.begin(self.log_dirs, self.config.log_config(), now_ms, self._loading)
            self._note_time()
            self._warn_of_readers()
            self._unready = "opening the metadata store"
            self._store = self._store or await self._open_store()
            if self._view.has_peers:
                self._watch_disks(self._store)
            if self._first_users:
                await self._ensure_users(self._store, self._first_users)
            config = await self._with_secrets(self._store)
            self._authorizer = await self._open_authorizer(self._store)
            self._parts = self._make_parts(config, self._store, self.failure)
            self._unready = "registering the broker"
            if self._view.has_peers:
                self._serve()
                await self._join_cluster()
            else:
                await self._join_cluster()
                self._serve()
            self._unready = ""
        except BaseException:
            # Close everything that has been opened, in the same order as when stopping, so that no
            # port stays in use after a failed start.
            await self.stop()
            raise

    def stop_loading(self) -> None:
        """Make `start` raise LoadingStopped while it loads logs. Signal handlers can call this."""
        self._loading.is_stopped = True

    def _bind(self) -> None:
        backlog = self.config.int("socket.listen.backlog.size")
        for listener in configured_listeners(self.config):
            # A keystore's password may be in the metadata store.
            tls = None if self._has_secrets else self._tls_of(listener, self.config)
            for sock in self._seams.bind(listener, backlog):
                for option, size in socket_options(self.config):
                    sock.setsockopt(socket.SOL_SOCKET, option, size)
                bound = listener._replace(port=sock.getsockname()[1])
                self.listeners.append(bound)
                self._bound.append(Bound(bound, sock, tls))

    @property
    def _has_secrets(self) -> bool:
        """Whether there may be passwords in the dynamic configs."""
        return self.config.is_set("password.encoder.secret")

    async def _with_secrets(self, store: MetadataStore) -> BrokerConfig:
        """Return the configuration, including the dynamic configs if listeners may depend on them.

        The TLS contexts of these listeners are created afterwards.
        """
        if not self._has_secrets:
            return self.config
        from barnabas.broker.configs.stored_secrets import StoredSecrets, with_stored_settings

        secrets = StoredSecrets(self.config)
        config = await with_stored_settings(self.config, store, secrets, self.broker_id)
        self._bound = [
            each._replace(tls=self._tls_of(each.listener, config)) for each in self._bound
        ]
        return config

    def _tls_of(self, listener: Listener, config: BrokerConfig) -> ServerTls | None:
        if not listener.protocol.uses_tls:
            return None
        # Imported here so that a broker without TLS never loads it.
        from barnabas.broker.security.server_tls import ServerTls

        is_inter_broker = listener.name == inter_broker_listener(config)[0]
        return ServerTls(listener, config, self.clock, is_inter_broker=is_inter_broker)

    async def _bind_metrics(self) -> None:
        port = self.config.int("barnabas.metrics.port")
        if port:
            # Imported here so that a broker without metrics never loads it.
            from barnabas.broker.metrics.process_metrics import ProcessMetrics
            from barnabas.net.metrics_listener import MetricsListener
            from barnabas.net.metrics_page import page

            host = self.config.str("barnabas.metrics.host") or self.listeners[0].host
            self._metrics_listener = MetricsListener(partial(page, self.metrics), self.unready)
            await self._metrics_listener.bind(host, port)
            await self._metrics_listener.start()
            self._process_metrics = ProcessMetrics(self.metrics)
            self._process_metrics.start()

    def _close_metrics(self) -> None:
        if self._metrics_listener is not None:
            self._metrics_listener.close()
        if self._process_metrics is not None:
            self._process_metrics.stop()

    def unready(self) -> str:
        """Return why this broker cannot serve clients, or "" if it can."""
        if self.failure is not None and self.failure.done():
            return self.failure.result()
        if not self._unready and not self.parts.control.controller.is_registered:
            return (
                "the session with the metadata store has expired and this broker has not "
                "re-registered yet"
            )
        return self._unready

    def _broker_state(self) -> int:
        """Return the BrokerState number that Kafka uses for this broker's current state."""
        return _BROKER_STATES.get(self._unready, _STARTING)

    async def _open_store(self) -> MetadataStore:
        if not self._view.has_peers:
            return await self._open_embedded_store()
        # Imported here so that a standalone broker never loads the ZooKeeper client.
        from barnabas.cluster.zookeeper import ZooKeeperStore
        from barnabas.cluster.zookeeper_settings import settings_from

        return await ZooKeeperStore.open(settings_from(self.config))

    async def _open_authorizer(self, store: MetadataStore) -> Authorizer:
        """Return the authorizer that is configured, with its ACLs loaded.

        Raises ConfigError. Raises MetadataError or CorruptData if some ACLs cannot be read, because
        no client may be served without them.
        """
        name = "authorizer.class.name"
        if not (self.config.is_set(name) and self.config.str(name)):
            return AllowAll()
        # Imported here, because few brokers use them.
        from barnabas.broker.security.acl_authorizer import AclAuthorizer
        from barnabas.broker.security.denials import Denials

        denials = Denials(self.events, self.clock, self.metrics)
        authorizer = AclAuthorizer(self.config, store, self.clock, self._seams.random, denials)
        await authorizer.acls.open()
        return authorizer

    def _watch_disks(self, store: MetadataStore) -> None:
        """Watch for hanging disks, because a hang alone does not end the ZooKeeper session."""
        # imported here, because a standalone broker does not need it
        from barnabas.cluster.remote_store import RemoteStore

        if isinstance(store, RemoteStore):
            self._pulse = self._seams.pulse(
                self._seams.files,
                lambda: self._logs.directories.online,
                self.config.int("log.dir.failure.timeout.ms"),
                partial(self._disk_hangs, store, asyncio.get_running_loop()),
            )
            self._pulse.start()

    def _disk_hangs(
        self, store: RemoteStore, loop: asyncio.AbstractEventLoop, directory: Path
    ) -> None:
        """Close the ZooKeeper session and then stop. This is called in another thread.

        The event loop may be waiting for that disk, and the log file may be on it too, so the
        session must be closed first.
        """
        self.is_hung = True
        store.give_up()
        timeout_ms = self.config.int("log.dir.failure.timeout.ms")
        reason = (
            f"log directory {directory} has not completed a write within {timeout_ms} ms "
            "(log.dir.failure.timeout.ms): this broker has ended its session so that others take "
            "over its partitions; repair the disk and restart the broker"
        )
        _log.critical("%s", reason)
        with suppress(RuntimeError):  # the event loop has been closed
            loop.call_soon_threadsafe(self._fail, reason)

    def _fail(self, reason: str) -> None:
        if self.failure is not None and not self.failure.done():
            self.failure.set_result(reason)

    async def _open_embedded_store(self) -> EmbeddedStore:
        """Open the embedded metadata store, which has a copy in every usable log directory."""
        directories = self._logs.directories.online
        store = EmbeddedStore.open(*directories, disk=self._seams.journals)
        cluster_id = self._logs.directories.cluster_id
        if store.was_new and cluster_id is not None:
            await store.close()
            # Like Kafka (InconsistentClusterId), treat an empty tree as the tree of a different
            # cluster. Otherwise, all logs would be stray, and topics with the same names could be
            # created again.
            raise ConfigError(
                f"the logs in {', '.join(map(str, directories))} belong to cluster {cluster_id}, "
                f"but its metadata is missing: no log directory has a non-empty {JOURNAL_NAME}. "
                "Restore it from a backup or import it (`barnabas metadata import`); or, to "
                f"continue without any topic, run `{accept_loss(directories)}`, which "
                "keeps the logs"
            )
        return store

    async def _ensure_users(self, store: MetadataStore, passwords: Mapping[str, str]) -> None:
        from barnabas.broker.security.first_users import ensure_users  # few brokers need it
        from barnabas.broker.security.secure_setup import MECHANISM

        for user in await ensure_users(store, MECHANISM, passwords):
            _log.info("user %s has a new password", user)

    def _make_parts(
        self, config: BrokerConfig, store: MetadataStore, failure: asyncio.Future[str]
    ) -> Parts:
        ground = Ground(
            config,
            self._seams,
            self.clock,
            self._view,
            self._logs,
            store,
            self._authorizer,
            failure,
            self.metrics,
            self.events,
        )
        bound, self._bound = self._bound, []  # from now on, the acceptors will close the sockets
        return Parts.make(ground, bound)

    async def _join_cluster(self) -> None:
        parts, view = self.parts, self._view
        if parts.control.alter_partition is not None:
            parts.control.alter_partition.start()
        parts.control.failure_reports.start()
        may_have_lost = await self._may_have_lost(parts)
        broker = self._registration(parts.network.endpoints, may_have_lost)
        if view.has_peers:
            # The controller may send requests before `start` has returned.
            assert self._store is not None
            cluster_id = await ensure_base(
                self._store, self._logs.directories.cluster_id, self._seams.random
            )
            view.update(view.image._replace(cluster_id=cluster_id))
        # All settings are read after registration, so notifications of earlier changes can be
        # skipped.
        await parts.network.dynamic_config.skip_past_changes()
        self._logs.directories.set_cluster_id(
            await parts.control.controller.start(broker, self._logs.directories.cluster_id)
        )
        # The controller's first requests have arrived, so this broker can now serve clients.
        await view.until(self._is_registered_in)
        unknown = self._logs.unknown_to(parts.control.controller.known_partitions)
        if not view.has_peers:
            parts.control.strays.add(unknown)
        if parts.partitions.replicas.offline:
            await parts.control.controller.replicas_offline(
                sorted(parts.partitions.replicas.offline)
            )
        await parts.network.dynamic_config.start()
        self._is_dynamic = True

    def _registration(self, endpoints: tuple[Endpoint, ...], may_have_lost: bool) -> BrokerImage:
        rack = self.config.str("broker.rack") or None
        return BrokerImage(self.broker_id, endpoints, rack, epoch=0, may_have_lost=may_have_lost)

    async def _may_have_lost(self, parts: Parts) -> bool:
        """Return whether an unclean shutdown may have lost records of these logs (KIP-966).

        This remains true until every partition has a leader that was elected after this warning.
        """
        if not self._view.has_peers:
            return False
        boot_id = self._seams.boot_id()
        if not self._logs.begins_whole(boot_id):
            parts.partitions.unplaced.on_found(await parts.control.controller.read_hosted())
        if not parts.partitions.unplaced:
            self._logs.directories.on_loss_known(boot_id)
            return False
        self._whole = asyncio.get_running_loop().create_task(self._until_whole(parts))
        return True

    async def _until_whole(self, parts: Parts) -> None:
        await parts.partitions.unplaced.until_placed()
        self._logs.directories.on_loss_known(self._seams.boot_id())
        await parts.control.controller.withdraw_loss_warning()

    def _is_registered_in(self, image: ClusterImage) -> bool:
        """Return whether the controller has processed the current registration of this broker.

        Metadata for an earlier registration was rejected. UpdateMetadata has no broker epochs.
        """
        return self.broker_id in image.brokers

    async def knows_brokers(self, broker_ids: Iterable[int]) -> None:
        """Wait until all of these brokers are known to this broker."""
        for broker_id in broker_ids:
            await self._view.until(partial(_has_broker, broker_id))

    def _serve(self) -> None:
        parts = self.parts
        for acceptor in parts.network.acceptors:
            acceptor.start()
        for tls in parts.network.tls:
            tls.start()
        self.clock.start()
        parts.network.idle_connections.start()
        parts.partitions.housekeeping.start()
        parts.partitions.cleaner.start()
        for warning in (*self.config.warnings, *exposures(self.config, self.listeners)):
            _log.warning("%s", warning)

    def watch_delays(self) -> None:
        """Report delays of the event loop, which must already be running this broker."""
        from barnabas.broker.loop_delays import LIMIT, LoopDelays

        self._delays = LoopDelays(self.events, self.clock, self.config.int(LIMIT))
        self._delays.start()

    # --- stop ------------------------------------------------------------------------------------

    async def ends_with_all(self) -> None:
        """Prepare to stop all brokers without moving leaderships or logging lost brokers."""
        self._view.is_cluster_stopping = True
        await self.parts.control.controller.stop()

    async def stop(self, *, gives_away: bool = True) -> None:
        """Stop cleanly, so that no recovery is needed at the next start. This can also be called
        after a failed start.

        If `gives_away`, this broker first lets other brokers take over its leaderships.
        """
        self._unready = _SHUTTING_DOWN
        parts = self._parts
        if (
            parts is not None
            and parts.control.shutdown is not None
            and self._is_dynamic
            and gives_away
        ):
            await parts.control.shutdown.run()
        self._close_metrics()
        if parts is not None:
            await self._stop_serving(parts)
        for _, sock, _ in self._bound:
            sock.close()
        await asyncio.sleep(0)  # let connections close before the logs are closed
        if parts is not None:
            await self._leave_cluster(parts)
        try:
            self._close_logs(parts)
        finally:
            if parts is not None:
                parts.partitions.threads.close()
            await self._close_store()

    async def abandon(self) -> None:
        """Stop in the same way as a process that is killed.

        No leadership is moved, nothing is checkpointed or marked clean, and requests in progress
        are not answered. Data that has been written is kept, and recovery is run at the next start.
        """
        parts = self.parts
        self._close_metrics()
        await self._stop_serving(parts)
        await asyncio.sleep(0)
        await self._leave_cluster(parts)
        # Write no clean shutdown marker, so that the next start runs recovery, as after a kill.
        self._logs.release()
        parts.partitions.threads.close()
        await self._close_store()

    async def _close_store(self) -> None:
        if self._pulse is not None:  # the start may have failed before joining a cluster
            self._pulse.stop()
        if self._authorizer.acls is not None:
            await self._authorizer.acls.close()
        if self._store is not None:
            await self._store.close()

    async def _stop_serving(self, parts: Parts) -> None:
        await parts.partitions.moves.stop()
        await parts.partitions.cleaner.stop()
        await parts.partitions.housekeeping.stop()
        parts.network.idle_connections.close()
        parts.network.memory.close()
        self.clock.stop()
        if self._delays is not None:
            self._delays.stop()
        for tls in parts.network.tls:
            tls.close()
        for acceptor in parts.network.acceptors:
            acceptor.close()
        for router in parts.network.routers:
            router.close()
        parts.network.quotas.close()

    async def _leave_cluster(self, parts: Parts) -> None:
        if self._pulse is not None:
            self._pulse.stop()
        if self._is_dynamic:
            await parts.network.dynamic_config.stop()
        parts.partitions.coordinators.close()
        if parts.control.alter_partition is not None:
            parts.control.alter_partition.close()
        if parts.partitions.others is not None:
            await parts.partitions.others.stop()
        if self._whole is not None:
            self._whole.cancel()
        parts.control.failure_reports.close()
        await parts.control.controller.stop()
        await parts.partitions.role_changes.deferred.close()

    def _close_logs(self, parts: Parts | None) -> None:
        """Shut down all log directories, cleanly if possible, and then raise the first error."""
        if parts is not None:
            try:
                self._logs.checkpoint_high_watermarks(parts.partitions.replicas.high_watermarks())
            except OSError as error:
                _log.error(
                    "cannot write the high-watermark checkpoint; the previous one stays in "
                    "place: %s",
                    error,
                )
            self._note_time()
        self._logs.close()

    def _warn_of_readers(self) -> None:
        """Warn if other users can read the log directories, which contain password hashes."""
        for directory in self._logs.directories.online:
            bits = 0
            with suppress(OSError):  # failed disks are detected by other code
                bits = self._seams.files.permissions(directory)
            if bits & 0o077:
                _log.warning(
                    "log directory %s can be %s by other users (mode %04o); run chmod 700 on it "
                    "unless this is intended",
                    directory,
                    "read and changed" if bits & 0o022 else "read",
                    bits,
                )

    def _note_time(self) -> None:
        """Store the current time, which is used to check the clock at the next start."""
        wall_ms = self.clock.trusted_wall_ms()
        if wall_ms is not None:
            with suppress(OSError):  # failed disks are detected by other code
                write_seen_ms(self._seams.files, self._logs.directories.online, wall_ms)


def _has_broker(broker_id: int, image: ClusterImage) -> bool:
    return broker_id in image.brokers
