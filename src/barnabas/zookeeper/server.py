"""Serves ZooKeeper's protocol on one machine: sockets, the disk and the clocks.

All requests are carried out in memory at once. Their transactions are written by one thread: while
it waits for the disk, further transactions gather, and the next fsync covers all of them.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from barnabas.clock import Clock, SystemClock
from barnabas.cluster.journal_disk import OS_DISK, JournalDisk
from barnabas.errors import BarnabasError
from barnabas.named_tuple import NamedTuple
from barnabas.net.loop import new_event_loop
from barnabas.zookeeper.connection import ClientConnection
from barnabas.zookeeper.journal import Journal
from barnabas.zookeeper.jute import ConnectRequest, long_bytes
from barnabas.zookeeper.latencies import Latencies
from barnabas.zookeeper.login import Login
from barnabas.zookeeper.processor import Processor
from barnabas.zookeeper.sessions import PASSWORD_BYTES, Sessions
from barnabas.zookeeper.settings import ZooKeeperSettings
from barnabas.zookeeper.state import State
from barnabas.zookeeper.transactions import snapshot_bytes
from barnabas.zookeeper.tree import Tree
from barnabas.zookeeper.words import BACKLOG, Figures, answer

_log = logging.getLogger(__name__)

_SNAPSHOT_GROWTH = 2
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LEAST_WAIT_S = 10.0  # for the first record of a connection


class Machine(NamedTuple):
    """Holds what the server needs from its machine. The simulator supplies its own."""

    clock: Clock
    disk: JournalDisk
    random_bytes: Callable[[int], bytes]
    snapshot_at_bytes: int = 4 << 20
    """The size of the journal at which it is replaced, unless the last snapshot was large."""


MACHINE = Machine(SystemClock(), OS_DISK, os.urandom)


class DiskFailed(BarnabasError):
    """Raised if transactions cannot be written, so the server has to end."""


def disk_advice(directory: Path, error: BaseException) -> str:
    """Return what an operator has to know if the server cannot write to its data directory."""
    remedy = "check the disk"
    if isinstance(error, OSError) and error.errno in _FULL:
        remedy = "make room on its disk, without removing any of its files"
    return (
        f"cannot write to the data directory {directory}: {error}. The server stops, because "
        "it may confirm nothing that is not on disk; everything that it has confirmed is there. "
        f"To continue, {remedy}, and start the server again"
    )


class ZooKeeperServer:
    """A server with its data directory."""

    def __init__(self, settings: ZooKeeperSettings, machine: Machine = MACHINE) -> None:
        """Read the data directory, which must exist. Raises OSError, ConfigError or CorruptData."""
        self.settings = settings
        self._machine = machine
        self._clock = machine.clock
        self._journal = Journal(settings.data_dir, machine.disk)
        sessions = Sessions(settings.min_timeout_ms, settings.max_timeout_ms)
        tree = Tree(accepts_ttl=settings.has_ttl)
        self._journal.load(tree, sessions)
        login = Login(settings.login, lambda: os.urandom(PASSWORD_BYTES).hex())
        self.processor = Processor(tree, sessions, login)
        self.synced_zxid = tree.zxid
        self._snapshot_size = self._journal.snapshot_size
        self.holding: dict[ClientConnection, None] = {}
        """The connections with frames that wait for the disk."""
        # What connections received and sent before they were closed or their counters were reset.
        self._received = self._sent = 0
        self.latencies = Latencies()
        self.connections: dict[ClientConnection, None] = {}
        self._per_host: Counter[str] = Counter()
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._listener: asyncio.Server | None = None
        self._began_s = 0.0
        self._ticked_s = 0.0
        self._containers_due_s = 0.0
        self.port = settings.port
        self.failure: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Listen, and let sessions expire from now on. Raises OSError."""
        loop = asyncio.get_running_loop()
        self.failure = loop.create_future()
        now_s = self._began_s = self._ticked_s = loop.time()
        self._containers_due_s = now_s + self.settings.container_check_ms / 1000
        # Ids are never reused, even if the files are moved away.
        self.processor.sessions.begin_after((self._clock.wall_ms() << 16) & (1 << 56) - 1)
        self.processor.sessions.touch_all(now_s)
        self._listener = await loop.create_server(
            lambda: ClientConnection(self),
            self.settings.host,
            self.settings.port,
            backlog=BACKLOG,
            reuse_address=True,
        )
        self.port = self._listener.sockets[0].getsockname()[1]
        self._schedule_tick()

    async def stop(self) -> None:
        """Close all connections, and write what has not been written. Sessions continue."""
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.abort()
        while not self._is_idle.is_set():  # one batch may follow another
            await self._is_idle.wait()
        self._journal.stop()

    # ---- what connections call ----

    def admit(self, connection: ClientConnection) -> bool:
        """Count a new connection, and return whether it is accepted."""
        limit = self.settings.max_connections
        self.connections[connection] = None
        self._per_host[connection.host] += 1
        if limit and self._per_host[connection.host] > limit:
            _log.warning(
                "refused a connection from %s, which has %d already (maxClientCnxns)",
                connection.host,
                limit,
            )
            return False
        return True

    def forget(self, connection: ClientConnection) -> None:
        self.connections.pop(connection, None)
        self.holding.pop(connection, None)
        self._per_host[connection.host] -= 1
        if self._per_host[connection.host] <= 0:
            del self._per_host[connection.host]
        self._keep_counts(connection)
        self.processor.disconnect(connection)

    def connect(self, connection: ClientConnection, request: ConnectRequest) -> None:
        self.processor.connect(
            connection,
            request,
            self._clock.wall_ms(),
            lambda: self._machine.random_bytes(PASSWORD_BYTES),
        )
        self._touch(connection)
        self._sync_if_needed()

    def execute(self, connection: ClientConnection, frame: bytes) -> None:
        self._touch(connection)
        self.processor.execute(connection, frame, self._clock.wall_ms())
        self._sync_if_needed()

    def word_answer(self, word: bytes) -> str:
        return answer(word, State(self))

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def reset_connections(self) -> None:
        """Reset the counters of each connection."""
        for each in self.connections:
            self._keep_counts(each)
            each.responses.reset()

    def reset_counts(self) -> None:
        """Reset the counters of the server as a whole."""
        self._received = -sum(each.received for each in self.connections)
        self._sent = -sum(each.sent for each in self.connections)
        self.latencies.reset()

    def _keep_counts(self, connection: ClientConnection) -> None:
        self._received += connection.received
        self._sent += connection.sent
        connection.received = connection.sent = 0

    # ---- the disk ----

    def _sync_if_needed(self) -> None:
        has_failed = self.failure is not None and self.failure.done()
        is_due = self.processor.tree.zxid > self.synced_zxid and not has_failed
        if is_due and self._is_idle.is_set():
            self._is_idle.clear()
            # The requests that have arrived in this turn of the loop share the fsync.
            asyncio.get_running_loop().call_soon(self._sync)

    def _sync(self) -> None:
        zxid = self.processor.tree.zxid
        batch = b"".join((long_bytes(zxid), *self.processor.take_staged()))
        due_at = max(self._machine.snapshot_at_bytes, _SNAPSHOT_GROWTH * self._snapshot_size)
        snapshot = None
        if self._journal.size_bytes + len(batch) > due_at:
            snapshot = snapshot_bytes(self.processor.tree, self.processor.sessions)
            self._snapshot_size = len(snapshot)
        loop = asyncio.get_running_loop()
        writing = loop.run_in_executor(None, self._write, batch, snapshot)
        writing.add_done_callback(lambda done: self._on_written(done, zxid))

    def _write(self, batch: bytes, snapshot: bytes | None) -> None:
        """Write a batch and any snapshot. This blocks, so it runs in a thread."""
        self._journal.append(batch)
        if snapshot is not None:
            self._journal.replace(snapshot)

    def _on_written(self, writing: asyncio.Future[None], zxid: int) -> None:
        self._is_idle.set()
        error = writing.exception()
        if error is not None:
            assert self.failure is not None
            if not self.failure.done():
                self.failure.set_exception(DiskFailed(disk_advice(self.settings.data_dir, error)))
            return
        self.synced_zxid = zxid
        # Before the connections continue with requests that they held back.
        self._sync_if_needed()
        for connection in list(self.holding):
            connection.release(zxid)
            if not connection.held:
                self.holding.pop(connection, None)

    # ---- the clock ----

    def _touch(self, connection: ClientConnection) -> None:
        session = connection.session
        if session is not None:
            session.touch(asyncio.get_running_loop().time())

    def _schedule_tick(self) -> None:
        asyncio.get_running_loop().call_later(self._tick_s, self._on_tick)

    @property
    def _tick_s(self) -> float:
        # Sessions end up to one tick late.
        return self.settings.tick_ms / 1000

    def _on_tick(self) -> None:
        now_s = asyncio.get_running_loop().time()
        late_s = now_s - self._ticked_s - self._tick_s
        self._ticked_s = now_s
        processor, time_ms = self.processor, self._clock.wall_ms()
        # If the process was suspended, the clients' pings have not been read yet.
        if late_s > self._tick_s:
            processor.sessions.postpone(late_s)
        for session_id in processor.sessions.past_deadline(now_s):
            _log.info("session 0x%x expired", session_id)
            processor.expire(session_id, time_ms)
        if now_s >= self._containers_due_s:
            self._containers_due_s = now_s + self.settings.container_check_ms / 1000
            processor.delete_unused(time_ms)
        self._sync_if_needed()
        wait_s = self.first_record_wait_s
        for connection in list(self.connections):
            if connection.is_waiting_for_session and now_s - connection.opened_at_s > wait_s:
                connection.abort()
        self._schedule_tick()

    @property
    def first_record_wait_s(self) -> float:
        """How long a connection may exist without a session."""
        return max(_LEAST_WAIT_S, 2 * self._tick_s)

    def figures(self) -> Figures:
        tree = self.processor.tree
        latencies = self.latencies
        return Figures(
            self._received + sum(each.received for each in self.connections),
            self._sent + sum(each.sent for each in self.connections),
            len(self.connections),
            *(sum(each.held for each in self.holding), tree.zxid, len(tree.nodes) + 1),
            sum(len(path) + len(node.data or b"") for path, node in tree.nodes.items()),
            sum(map(len, tree.ephemerals.values())),
            *(len(self.processor.watches), len(self.processor.sessions.by_id)),
            latencies.least_ms,
            latencies.mean_ms,
            latencies.most_ms,
            round((asyncio.get_running_loop().time() - self._began_s) * 1000),
        )


def run(settings: ZooKeeperSettings) -> int:
    """Serve clients until SIGTERM or SIGINT, and return the exit code."""
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(_serve(settings))
    except (BarnabasError, OSError) as error:
        reason = _reason(error, settings) if isinstance(error, OSError) else str(error)
        sys.stderr.write(f"barnabas zookeeper: {reason}\n")
        return 1


def _reason(error: OSError, settings: ZooKeeperSettings) -> str:
    """Describe why the server cannot run, and what to do."""
    if error.errno in (*_FULL, errno.EIO, errno.EROFS):
        return disk_advice(settings.data_dir, error)
    if error.errno == errno.EADDRINUSE:
        return f"port {settings.port} is in use: stop the process that uses it, or use --port"
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return (
            f"{settings.host} is not an address of this machine: correct clientPortAddress or "
            "--host"
        )
    if error.errno == errno.EACCES and error.filename is None:
        return f"port {settings.port} needs root's rights: use a port above 1023 (--port)"
    problem = (error.strerror or str(error)).lower()
    if isinstance(error, FileExistsError):
        problem = "not a directory"
    where = error.filename or settings.data_dir
    return f"{where}: {problem}; correct dataDir or --data-dir, or the directory's owner"


async def _serve(settings: ZooKeeperSettings) -> int:
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    server = ZooKeeperServer(settings)
    try:
        await server.start()
        assert server.failure is not None
        server.failure.add_done_callback(lambda _: stopping.set())
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        sys.stdout.write(f"zookeeper ready on {host}:{server.port}\n")
        sys.stdout.flush()
        gc.freeze()
        gc.enable()
        await stopping.wait()
        if server.failure.done():
            server.failure.result()
        _log.info("stopping")
    finally:
        await server.stop()
    _log.info("stopped cleanly")
    return 0
