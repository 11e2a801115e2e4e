"""Implements the life cycle of the embedded `Broker` and `Cluster`: directory, thread or process,
start and stop.

    start -> stop -> start -> ... -> close

Port and data survive `stop`. `close`, called at the end of a `with` block, also removes a temporary
directory (the next start is empty) and closes the clients handed to callers.

Invariant: the thread or process exists only between `start` and `stop`, even if one of these fails.
"""

from __future__ import annotations

import asyncio
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, TypeVar, Unpack

from barnabas.broker.seams import Seams, interposed_seams
from barnabas.client.config import of_every_client
from barnabas.client.loop_thread import LoopThread
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.shielded import shielded
from barnabas.storage.files import OsFiles
from barnabas.testing.embedded.data_directory import DataDirectory, UnsyncedFiles
from barnabas.testing.embedded.handle import BrokerHandle
from barnabas.testing.embedded.pause import Pause
from barnabas.testing.embedded.secured import Secured, client_settings
from barnabas.testing.embedded.settings import QuietLog

if TYPE_CHECKING:
    from barnabas.testing.embedded.child_process import ChildProcess
    from barnabas.testing.embedded.snapshot import Snapshot, SnapshotKind
    from barnabas.testing.faults.distant_faults import DistantFaults

T = TypeVar("T")

_PATIENCE_S: Final = 60.0


class LifeOptions(TypedDict, total=False):
    """The options of every embedded broker and cluster.

    `production_defaults`: use Kafka's defaults and leave log levels unchanged, instead of settings
    that suit tests.
    `process`: run in a separate process, which ends with this one.
    `snapshot`: start with a copy of this snapshot, or of the one at this path.
    `secure`: use TLS, authentication and ACLs. A path names a directory of certificates and
    passwords, created if missing. `client_settings` returns the settings that a client needs.
    """

    production_defaults: bool
    process: bool
    snapshot: Snapshot | str | os.PathLike[str] | None
    secure: bool | str | os.PathLike[str]


class EmbeddedLife(BrokerHandle):
    """Starts and stops the brokers that a subclass runs.

    `noun`: the word for it in messages. `given_dir`: None creates a temporary directory. Any thread
    may call `start` and `stop`.
    """

    def __init__(self, noun: str, given_dir: Path | None, **options: Unpack[LifeOptions]) -> None:
        super().__init__()
        # Otherwise, **options would accept a misspelt argument.
        for name in options.keys() - LifeOptions.__annotations__.keys():
            raise TypeError(f"{name}: {type(self).__name__} has no such argument")
        self._noun = noun
        self._directory = DataDirectory(given_dir)
        self._production_defaults = options.get("production_defaults", False)
        self._is_process = options.get("process", False)
        self._first_state = options.get("snapshot")
        where = options.get("secure", False)
        self._secured = None if where is False else Secured(where)
        self._life = threading.RLock()
        self._quiet = QuietLog()
        self._is_closing = False  # temporary data need not be kept
        self._started_in: int | None = None  # the id of the process that last called `start`
        self._thread: LoopThread | None = None
        self._child: ChildProcess | None = None
        self._pause: Pause | None = None  # a pause of all brokers
        self._distant: DistantFaults | None = None  # the faults of the child, if used

    # ---- starting and stopping ----

    def start(self) -> Self:
        """Start the broker or cluster, and return when it is ready."""
        with self._life:
            if self.is_running:
                raise ConfigError(f"this {self._noun} is already running")
            # If the start fails, remove the directory that was created for it, but keep an existing
            # one.
            is_new = self._directory.path is None
            self._started_in = os.getpid()
            try:
                self._begin_data()
                if self._is_process:
                    self._start_process()
                else:
                    self._start_thread()
            except BaseException:
                self._end()
                if is_new:
                    self._directory.remove()
                raise
        return self

    def stop(self) -> None:
        """Stop cleanly. Do nothing if nothing is running. The port and the data are kept for the
        next start.

        Raises OSError with the reason if the broker or cluster could not continue and stopped by
        itself.
        """
        with self._life:
            if not self.is_running:
                return
            # Resume first, because a paused broker cannot stop, and this call would wait for it.
            self._go_on()
            try:
                # Close clients first, because without a broker, they would only retry.
                self._hang_up()
                if self._distant is not None:
                    self._distant.end()
                if self._child is not None:
                    self._child.call("stop")
                else:
                    self.thread.run(self._in_time(self._stop(), "stop"))
            finally:
                self._end()

    def close(self) -> None:
        """Stop, close the clients handed to callers, and remove any temporary directory.

        Do nothing in a process that was forked from the one that called `start`, so that the end of
        a `with` block there does not affect the parent.
        """
        if self._started_in not in (None, os.getpid()):
            return
        with self._life:
            self._is_closing = True
            try:
                if self.is_running:
                    self._close_handed_out()
                self.stop()
            finally:
                self._is_closing = False
                self._directory.remove()
                if self._secured is not None:
                    self._secured.remove()

    def kill(self) -> None:
        """End the process, as `kill -9` does. The next start recovers the written data.

        Raises ConfigError unless the broker or cluster runs in a separate process.
        """
        with self._life:
            if self._child is None:
                raise ConfigError(
                    f"kill: this {self._noun} has no running process of its own; create it with "
                    "process=True"
                )
            self._hang_up()
            # A paused process does not respond, so its latest counts are lost.
            if self._distant is not None and self._pause is None:
                self._distant.end()
            child, self._child = self._child, None
            self._pause = None
            child.kill()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        """Start as in a plain `with` block, but without blocking the caller's loop."""
        try:
            await _in_a_thread(self.start)
        # A start cannot be interrupted halfway, so let it finish, and then undo it.
        except asyncio.CancelledError:
            await _in_a_thread(self.close)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await _in_a_thread(self.close)

    # ---- snapshots ----

    def snapshot(self, path: str | os.PathLike[str] | None = None) -> Snapshot:
        """Save the whole state: records, offsets, groups, transactions, topics and configs.

        `path`: a new directory for the snapshot; None: a temporary one. A running broker is stopped
        for the copy and restarted on its port. This takes about 30 ms; clients reconnect
        automatically. Raises ConfigError or OSError.
        """
        from barnabas.testing.embedded.snapshot import Snapshot

        where = None if path is None else Path(path)
        with self._life:
            source = self._one_directory("snapshot")
            return self._while_stopped(lambda: Snapshot.take(source, self._kind, where))

    def restore(self, snapshot: Snapshot | str | os.PathLike[str]) -> None:
        """Replace the whole state with a snapshot's. A running broker is restarted.

        Raises ConfigError for a snapshot of another kind, without changing anything.
        """
        from barnabas.testing.embedded.snapshot import open_snapshot

        with self._life:
            source = open_snapshot(snapshot)
            target = self._one_directory("restore")
            self._while_stopped(lambda: source.restore_to(target, self._kind))

    # ---- access while it is running ----

    def client_settings(self, library: str = "barnabas") -> dict[str, Any]:
        """Return the settings with which a client connects. If security is on, it connects as
        `admin`.

        `library`: determines the setting names: "barnabas", "java", "confluent-kafka",
        "kafka-python" or "aiokafka".

            confluent_kafka.Producer(broker.client_settings("confluent-kafka"))
            aiokafka.AIOKafkaProducer(**broker.client_settings("aiokafka"))
        """
        return dict(client_settings(self._secured, self.bootstrap_servers, library))

    def _client_options(self) -> dict[str, Any]:
        if self._secured is None:
            return {}
        return of_every_client(self._secured.setup.client_settings())

    @property
    def is_running(self) -> bool:
        return self._thread is not None or self._child is not None

    @property
    def data_dir(self) -> Path:
        """The directory that contains the data."""
        directory = self._directory.path
        if directory is None:
            raise ConfigError(
                f"the {self._noun} was not started, and its directory is a temporary one"
            )
        return directory

    @property
    def thread(self) -> LoopThread:
        """The thread in which the loop of the broker or cluster runs. Raises ConfigError if nothing
        is running.
        """
        if self._thread is None:
            raise self._is_not_running()
        return self._thread

    @property
    def pid(self) -> int:
        """The id of the process in which the broker or cluster runs: this process or, with
        `process=True`, a separate one.
        """
        if self._child is not None:
            return self._child.pid
        if self._thread is None:
            raise self._is_not_running()
        return os.getpid()

    def _is_not_running(self) -> ConfigError:
        if self._child is not None:
            return ConfigError(
                f"the {self._noun} runs in process {self._child.pid}, so its objects are not here"
            )
        return ConfigError(
            f"the {self._noun} is not running: use it in a with block, or call start()"
        )

    # ---- internal methods ----

    def _go_on(self) -> None:
        """End any pause of the entire broker or cluster."""
        pause, self._pause = self._pause, None
        if pause is not None:
            pause.resume()

    def _begin_data(self) -> None:
        """Prepare the directory, and restore the snapshot to start with, if any."""
        if self._first_state is None:
            self._directory.make()
            return
        from barnabas.testing.embedded.snapshot import open_snapshot

        is_new = self._directory.path is None
        directory = self._directory.make()
        # A snapshot may replace data only at the user's request.
        if not is_new and directory.is_dir() and any(directory.iterdir()):
            if self._directory.is_temporary:
                return  # continue with the previous data
            raise ConfigError(
                f"snapshot: data_dir={directory} has data; use an empty one, or call restore()"
            )
        open_snapshot(self._first_state).restore_to(directory, self._kind)
        # The data in a user's directory is kept, so later starts do not restore the snapshot again.
        if not self._directory.is_temporary:
            self._first_state = None

    def _start_thread(self) -> None:
        if not self._production_defaults:
            self._quiet.begin()
        self._thread = LoopThread(f"barnabas-{self._noun}")
        try:
            self._thread.run(self._in_time(self._start(), "start"))
        except BaseException:
            # The first error is more informative than any error while stopping.
            with suppress(OSError):
                self._thread.run(self._in_time(self._stop(), "stop"))
            raise

    def _start_process(self) -> None:
        from barnabas.testing.embedded.child_process import ChildProcess

        arguments = {**self._arguments(), "production_defaults": self._production_defaults}
        if self._secured is not None:
            arguments["secure"] = str(self._secured.setup.directory)
        self._child = ChildProcess(type(self).__name__, arguments, _PATIENCE_S)
        self._take_ports(self._child.call("start"))
        if self._distant is not None:
            self._distant.begin()

    def _control_port(self) -> int | None:
        """Return the port of the HTTP server for faults in the child process, or None if there is
        no child process.
        """
        with self._life:
            if self._child is None:
                return None
            # A paused child cannot respond, so the call would time out.
            if self._pause is not None:
                raise ConfigError(
                    f"faults: process {self._child.pid} is paused and cannot accept faults; "
                    "call resume()"
                )
            return int(self._child.call("control"))

    def call_child(self, method: str, *arguments: Any) -> Any:
        """Call a method in the separate process that `process=True` has created. Raises ConfigError
        if the process is not running.
        """
        with self._life:
            if self._child is None:
                raise self._is_not_running()
            return self._child.call(method, *arguments)

    def _end(self) -> None:
        if self._thread is not None:
            self._thread.stop()
            self._thread = None
        if self._child is not None:
            self._child.end()
            self._child = None
        self._quiet.end()

    def answer(self, method: str, *arguments: Any) -> Any:
        """Execute a call from the parent on the broker in this process, for `process=True`."""
        getattr(self, method)(*arguments)
        return self._ports_taken()

    def _while_stopped(self, work: Callable[[], T]) -> T:
        was_running = self.is_running
        self.stop()
        try:
            return work()
        finally:
            # If the broker was running, restart it, even if the copy has failed.
            if was_running:
                self.start()

    def _one_directory(self, what: str) -> Path:
        """Return the directory that contains the entire state. Raises ConfigError unless there is
        exactly one such directory.
        """
        return self.data_dir

    async def _in_time(self, work: Coroutine[Any, Any, None], what: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S) as limit:
                await work
        except TimeoutError:
            # The work itself raised this TimeoutError.
            if not limit.expired():
                raise
            raise TimeoutError(
                f"the {self._noun} did not {what} within {_PATIENCE_S:g} s"
            ) from None

    def _seams(self) -> Seams:
        """Return the system's seams. Files are not synced if the data is temporary. `faults` may
        replace the seams.
        """
        is_short_lived = self._directory.is_temporary and not self._production_defaults
        return interposed_seams(UnsyncedFiles() if is_short_lived else OsFiles())

    def _config_of(self, properties: Mapping[str, str]) -> BrokerConfig:
        config = BrokerConfig(properties)
        if self._directory.is_temporary or not self._production_defaults:
            # The caller chose this directory, so a warning that it is temporary is not needed.
            config.warnings = [w for w in config.warnings if str(self._directory.path) not in w]
        return config

    # ---- methods that subclasses implement ----

    @property
    @abstractmethod
    def _kind(self) -> SnapshotKind:
        """Return the kind of snapshots."""

    @abstractmethod
    def _arguments(self) -> dict[str, Any]:
        """Return the arguments to create the same broker or cluster in another process, with this
        directory and these ports.
        """

    @abstractmethod
    def _ports_taken(self) -> Any:
        """Return the ports in the form accepted by `_take_ports`."""

    @abstractmethod
    def _take_ports(self, ports: Any) -> None:
        """Store the ports returned by `_ports_taken` in a child process."""

    @abstractmethod
    async def _start(self) -> None:
        """Start on the loop, and return when requests can be served. After a failure, `_stop` stops
        what was started.
        """

    @abstractmethod
    async def _stop(self) -> None:
        """Stop, on the loop, whatever `_start` has started."""


async def _in_a_thread(call: Callable[[], object]) -> None:
    """Call a function in a thread without blocking this loop. Even if the caller is cancelled, it
    waits until the call has ended.
    """
    work = asyncio.ensure_future(asyncio.to_thread(call))
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.gather(shielded(work), return_exceptions=True)
        except asyncio.CancelledError as error:
            cancelled = error
    failure = work.exception()
    if cancelled is not None:
        raise cancelled
    if failure is not None:
        raise failure
