"""Runs several brokers in this process, for tests and notebooks. The brokers replicate, elect
leaders and move replicas.

    with barnabas.Cluster(brokers=3) as cluster:
        admin = Admin({"bootstrap.servers": cluster.bootstrap_servers})

All brokers run on one loop in one thread or, with `own_threads=True`, on one loop each. They share
one metadata tree, in which each broker has its own session, and connect to each other through
sockets, like brokers on several machines. This shows how a cluster behaves, not how fast it runs.
To test speed or `kill -9`, start processes (`barnabas cluster start`).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from barnabas.broker.server import Server
from barnabas.cluster.distant_session import DistantSession
from barnabas.cluster.embedded import EmbeddedStore
from barnabas.cluster.journal import Journal
from barnabas.cluster.node_bytes import tree_to_bytes
from barnabas.cluster.store import MetadataStore
from barnabas.config.metrics_ports import metrics_port
from barnabas.errors import ConfigError
from barnabas.testing.embedded.first_listener import address, with_port
from barnabas.testing.embedded.life import EmbeddedLife, LifeOptions
from barnabas.testing.embedded.own_threads import OwnThreads
from barnabas.testing.embedded.pause import Paused
from barnabas.testing.embedded.secured import listener
from barnabas.testing.embedded.settings import Setting, defaults_for_tests, texts

if TYPE_CHECKING:
    from barnabas.cluster.embedded_session import EmbeddedSession
    from barnabas.testing.embedded.snapshot import SnapshotKind
    from barnabas.testing.faults.cluster_faults import ClusterFaults

_METADATA = "metadata"


class Cluster(EmbeddedLife):
    """Runs `brokers` brokers (ids 1, 2, ...) on free ports of 127.0.0.1.

    `data_dir`: contains a directory for each broker and one for the metadata; None creates a
    temporary directory that is removed at `close` and at the end of the `with` block.
    `config`: Kafka's broker configs by name, for all brokers, as text, numbers or booleans;
    `broker_config`: additional configs for single brokers, by broker id
    (`{1: {"broker.rack": "east"}}`). If `config` contains `barnabas.metrics.port`, broker 1 uses
    that port, and the others use the following ports.
    `own_threads`: run each broker in its own thread, so that it can be paused alone.
    `production_defaults`, `process` (one process for all brokers) and `snapshot` are as for a
    `Broker`. An internal topic has one partition per broker, unless `production_defaults` is true.

    `start` raises ConfigError or OSError, and the message suggests a remedy in one line. A stopped
    cluster may be restarted on the same ports and with the same data, until `close`.
    """

    def __init__(
        self,
        brokers: int = 3,
        data_dir: str | Path | None = None,
        config: Mapping[str, Setting] | None = None,
        broker_config: Mapping[int, Mapping[str, Setting]] | None = None,
        own_threads: bool = False,
        **options: Unpack[LifeOptions],
    ) -> None:
        if brokers < 1:
            raise ConfigError(f"brokers={brokers}: at least one is needed")
        self.broker_ids = range(1, brokers + 1)
        self._config = texts(config)
        self._broker_config = {
            broker_id: texts(own) for broker_id, own in (broker_config or {}).items()
        }
        # Otherwise, a config for a nonexistent broker would be silently ignored.
        strangers = sorted(self._broker_config.keys() - set(self.broker_ids))
        if strangers:
            raise ConfigError(
                f"broker_config names broker {strangers[0]}, but the cluster has brokers 1 to "
                f"{brokers}"
            )
        super().__init__("cluster", None if data_dir is None else Path(data_dir), **options)
        self._store: EmbeddedStore | None = None
        self._unwritten: Path | None = None  # where to write metadata kept in memory
        self._servers: dict[int, Server] = {}
        self._ports: dict[int, int] = {}
        self._running: list[int] = []  # broker ids
        self._sessions: dict[int, EmbeddedSession] = {}
        self._threads = OwnThreads() if own_threads else None
        self._faults: ClusterFaults | None = None

    def __repr__(self) -> str:
        where = self.bootstrap_servers if self.is_running else "not running"
        return f"<Cluster {where}>"

    # ---- starting and stopping ----

    def stop_broker(self, broker_id: int) -> None:
        """Stop one broker cleanly.

        The broker hands over its leaderships before it stops (RE-13).
        """
        self._change("stop_broker", broker_id)

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped broker on its previous port with its previous data."""
        self._change("start_broker", broker_id)

    def _change(self, method: str, broker_id: int) -> None:
        """Call the method in the thread without holding the lock, because a stopping broker may
        wait for another broker to stop.
        """
        if not self._is_process:
            works = {
                "start_broker": self._start_stopped_broker,
                "stop_broker": self._stop_broker,
                "kill_broker": self._kill_broker,
            }
            self.thread.run(works[method](broker_id))
            return
        with self._life:
            child = self._child
            if child is None:
                raise self._is_not_running()
            self._take_ports(child.call(method, broker_id))

    def kill_broker(self, broker_id: int) -> None:
        """Stop one broker abruptly, as `kill -9` does. The broker recovers its log at the next
        start.
        """
        self._change("kill_broker", broker_id)

    def pause(self, broker_id: int) -> Paused:
        """Freeze one broker, as with SIGSTOP, until `resume`, the end of a `with` block, or its
        stop. `Broker.pause` describes the effect.

        The broker's metadata session ends after `zookeeper.session.timeout.ms`, and the broker
        starts a new one when it is resumed. Raises ConfigError unless the broker is running in its
        own thread.
        """
        # The child process contains the broker and its thread.
        if self._own_threads(broker_id) is None:
            self._change("pause", broker_id)
        else:
            self._pause_here(broker_id)
        return Paused(partial(self.resume, broker_id))

    def resume(self, broker_id: int) -> None:
        """End a broker's pause. Do nothing if the broker is not paused."""
        threads = self._own_threads(broker_id)
        if threads is None:
            self._change("resume", broker_id)
        else:
            self.thread.call(partial(threads.go_on, broker_id))

    # ---- access while it is running ----

    @property
    def faults(self) -> ClusterFaults:
        """The faults of this cluster, which are defined by rules. See `barnabas.testing.faults`."""
        if self._faults is None:
            # The module is loaded on first use, because most clusters never need faults.
            if self._is_process:
                from barnabas.testing.faults.distant_faults import DistantClusterFaults

                distant = DistantClusterFaults(self, self._control_port)
                self._faults = self._distant = distant
                return distant
            from barnabas.testing.faults.cluster_faults import ClusterFaults

            self._faults = ClusterFaults(self)
            for server in self._servers.values():
                self._faults.attach(server)
        return self._faults

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the running brokers for Kafka clients: `127.0.0.1:PORT,...`, or the
        addresses of the first listeners.
        """
        if not self.is_running:
            raise self._is_not_running()
        return ",".join(
            address({**self._config, **self._broker_config.get(number, {})}, self._ports[number])
            for number in self._running
        )

    @property
    def running_broker_ids(self) -> list[int]:
        """The ids of the running brokers, in the order in which they were started."""
        return list(self._running)

    @property
    def store(self) -> EmbeddedStore:
        """The metadata shared by all brokers. Use it only on the cluster's loop."""
        if self._store is None:
            raise self._is_not_running()
        return self._store

    @property
    def servers(self) -> tuple[Server, ...]:
        """The running brokers. Use each of them only on its loop, as described for `server`."""
        return tuple(self._servers.values())

    def server(self, broker_id: int) -> Server:
        """Return a running broker. Use it only on its loop, which is either its own or the
        cluster's."""
        server = self._servers.get(broker_id)
        if server is None:
            raise ConfigError(f"broker {broker_id} is not running")
        return server

    def session(self, broker_id: int) -> EmbeddedSession:
        """Return the metadata session of a running broker. Use it only on the cluster's loop."""
        self.server(broker_id)
        return self._sessions[broker_id]

    def call_soon(self, broker_id: int, callback: Callable[[], None]) -> None:
        """Call a function on a broker's loop. This method must be called on the cluster's loop."""
        if self._threads is None:
            callback()
        else:
            self._threads.call_soon(broker_id, callback)

    # ---- internal methods ----

    def _own_threads(self, broker_id: int) -> OwnThreads | None:
        """Return the threads of the brokers that can be paused, or None if the brokers run in a
        child process.
        """
        if self._threads is None:
            raise ConfigError(
                f"broker {broker_id} cannot be paused: all brokers of this cluster share one "
                "thread. Create the cluster with own_threads=True, or cut off the running broker "
                f"with faults.isolate({broker_id})"
            )
        return None if self._is_process else self._threads

    def _pause_here(self, broker_id: int) -> None:
        assert self._threads is not None
        server, session = self.server(broker_id), self.session(broker_id)
        # Wait in the caller's thread, because the metadata's loop must not wait for a busy broker.
        pause = self._threads.stop(broker_id)
        timeout_ms = server.config.int("zookeeper.session.timeout.ms")
        self.thread.call(partial(self._threads.on_stopped, broker_id, pause, session, timeout_ms))

    @property
    def _kind(self) -> SnapshotKind:
        from barnabas.testing.embedded.snapshot import SnapshotKind

        return SnapshotKind("cluster", len(self.broker_ids))

    def _arguments(self) -> dict[str, Any]:
        listeners = {key: self._config[key] for key in ("listeners",) if key in self._config}
        own = dict(self._broker_config)
        for number, port in self._ports.items():
            given = {**listeners, **own.get(number, {})}
            # Start the child on the same ports, because clients already know the addresses.
            own[number] = with_port({**listener(self._secured, port), **given}, port)
        return {
            "brokers": len(self.broker_ids),
            "data_dir": str(self.data_dir),
            "config": self._config,
            "broker_config": own,
            "own_threads": self._threads is not None,
        }

    def _ports_taken(self) -> list[tuple[int, int]]:
        """Return the ids and ports of the running brokers, in the order in which they
        were started.
        """
        return [(broker_id, self._ports[broker_id]) for broker_id in self._running]

    def _take_ports(self, ports: Sequence[tuple[int, int]]) -> None:
        self._running = [broker_id for broker_id, _ in ports]
        self._ports.update(dict(ports))

    # ---- methods that run on the loop ----

    async def _start(self) -> None:
        """Start all brokers, and wait until each is ready and has discovered all others."""
        directory = self.data_dir / _METADATA
        directory.mkdir(parents=True, exist_ok=True)
        self._running = []
        # Temporary metadata does not have to survive this process, so write it only when the
        # cluster stops.
        is_new = self._directory.is_temporary and not any(directory.iterdir())
        self._unwritten = directory if is_new else None
        self._store = EmbeddedStore() if is_new else EmbeddedStore.open(directory)
        for broker_id in self.broker_ids:
            await self._start_broker(broker_id)
        for broker_id, server in self._servers.items():
            # Otherwise, a test's first request might reach a broker that has not discovered all
            # others.
            await self._on_loop(broker_id, server.knows_brokers(self.broker_ids))

    async def _start_broker(self, broker_id: int) -> None:
        assert self._store is not None
        config = self._config_of(self._properties(broker_id))
        session = self._store.session()
        store: MetadataStore = session
        if self._threads is not None:
            # A broker in another thread accesses the tree through the metadata's loop.
            store = DistantSession(session, self._threads.begin(broker_id))
        users = None if self._secured is None else self._secured.setup.passwords
        server = Server(config, self._seams(), store, first_users=users)
        try:
            await self._on_loop(broker_id, _start(server))
        except BaseException:
            # End the thread, which was created before the failed start.
            await self._end_thread(broker_id)
            raise
        self._sessions[broker_id] = session
        self._servers[broker_id] = server
        if self._faults is not None:
            self._faults.attach(server)
        self._ports[broker_id] = server.port
        self._running.append(broker_id)

    async def _start_stopped_broker(self, broker_id: int) -> None:
        if broker_id in self._running or broker_id not in self.broker_ids:
            raise ConfigError(f"broker {broker_id} is running, or does not belong to this cluster")
        await self._start_broker(broker_id)

    async def _stop_broker(self, broker_id: int) -> None:
        await self._end_server(broker_id, self._taken_out(broker_id).stop())

    async def _kill_broker(self, broker_id: int) -> None:
        await self._end_server(broker_id, self._taken_out(broker_id).abandon())

    def _taken_out(self, broker_id: int) -> Server:
        """Remove and return a broker that is about to stop. Raises ConfigError if it is not
        running.
        """
        if broker_id not in self._running:
            raise ConfigError(f"broker {broker_id} is not running")
        self._running.remove(broker_id)
        # A paused broker cannot stop, so resume it first.
        if self._threads is not None:
            self._threads.go_on(broker_id)
        if self._faults is not None:
            self._faults.detach(broker_id)
        return self._servers.pop(broker_id)

    async def _on_loop(self, broker_id: int, work: Coroutine[Any, Any, None]) -> None:
        if self._threads is None:
            await work
        else:
            await self._threads.run(broker_id, work)

    async def _end_server(self, broker_id: int, stop: Coroutine[Any, Any, None]) -> None:
        try:
            await self._on_loop(broker_id, stop)
        finally:
            await self._end_thread(broker_id)

    async def _end_thread(self, broker_id: int) -> None:
        if self._threads is not None:
            await self._threads.end(broker_id)

    def _properties(self, broker_id: int) -> dict[str, str]:
        size = len(self.broker_ids)
        port = self._ports.get(broker_id, 0)
        properties = {
            "broker.id": str(broker_id),
            **listener(self._secured, port),
            "log.dirs": str(self.data_dir / f"broker-{broker_id}"),
            "offsets.topic.replication.factor": str(min(3, size)),
            "transaction.state.log.replication.factor": str(min(3, size)),
            # Kafka's defaults are for three brokers. With fewer, no internal topic could be
            # created.
            "transaction.state.log.min.isr": str(min(2, size)),
            **({} if self._production_defaults else defaults_for_tests(size)),
            **self._config,
            **metrics_port(self._config, broker_id),
            **self._broker_config.get(broker_id, {}),
        }
        return with_port(properties, port)

    async def _stop(self) -> None:
        for broker_id, server in self._servers.items():
            if self._threads is not None:
                self._threads.go_on(broker_id)
            # Notify all brokers before the first one stops, so that no leadership is moved.
            await self._on_loop(broker_id, server.ends_with_all())
        for broker_id in reversed(self.broker_ids):
            if broker_id in self._servers:
                stop = self._taken_out(broker_id).stop(gives_away=False)  # all brokers stop
                await self._end_server(broker_id, stop)
        if self._store is not None:
            await self._store.close()
            # If `close` is about to remove the directory, the tree does not have to be written.
            if self._unwritten is not None and not self._is_closing:
                _write(self._store, self._unwritten)
            self._store = None


def _write(store: EmbeddedStore, directory: Path) -> None:
    journal = Journal(directory)
    try:
        journal.replace(tree_to_bytes(store.tree))
    finally:
        journal.close()


async def _start(server: Server) -> None:
    """Start a broker on the loop that serves it."""
    await server.start()
    server.watch_delays()
