"""Runs a broker in this process or in a separate one, for tests, notebooks and small programs.

    with barnabas.Broker() as broker:
        orders = broker.topic("orders")
        orders.send(b"one")
        assert orders.values() == [b"one"]

`async with` works too. The broker has its own thread and event loop or, with `process=True`, its
own process. Several brokers may run at the same time. They share no module-level state, and no
signal handler is set.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from barnabas.broker.server import Server
from barnabas.errors import ConfigError
from barnabas.testing.embedded.first_listener import address, with_port
from barnabas.testing.embedded.life import EmbeddedLife, LifeOptions
from barnabas.testing.embedded.pause import Paused, ProcessPause, ThreadPause
from barnabas.testing.embedded.secured import listener
from barnabas.testing.embedded.settings import Setting, defaults_for_tests, texts

if TYPE_CHECKING:
    from barnabas.testing.embedded.snapshot import SnapshotKind
    from barnabas.testing.faults.broker_faults import Faults


class Broker(EmbeddedLife):
    """Runs a one-node broker on 127.0.0.1.

    `data_dir`: the log directory; None creates a temporary directory that is removed at `close` and
    at the end of the `with` block, unless `config` sets `log.dirs`.
    `port`: 0 selects a free port. `config`: Kafka's broker configs by name, as text, numbers or
    booleans.
    `production_defaults`: use Kafka's defaults, and leave log levels unchanged. Otherwise, the
    defaults suit tests: no wait before a group's first rebalance, one partition for each internal
    topic, and no log messages below WARNING.
    `process`: run in a separate process, which is useful for tests that keep a core busy, and
    required for `kill`. That process ends when this one does, even if this one is killed.
    `snapshot`: start with a copy of this state (see `snapshot`).

    `start` raises ConfigError or OSError, and the message suggests a remedy in one line. A stopped
    broker may be restarted on the same port and with the same data. `close` removes a temporary
    directory, so the next start is empty. A broker that cannot continue stops by itself; `stop`
    then raises OSError with the reason.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        port: int = 0,
        config: Mapping[str, Setting] | None = None,
        **options: Unpack[LifeOptions],
    ) -> None:
        self._config = texts(config)
        self._log_dirs = self._config.get("log.dirs", "")
        # Both of them specify a directory, so it is unclear which one is meant.
        if data_dir is not None and self._log_dirs:
            raise ConfigError(
                f"data_dir={data_dir} and log.dirs={self._log_dirs}: set only one of them"
            )
        # The first of several log directories identifies the broker.
        given = data_dir or self._log_dirs.split(",")[0].strip()
        super().__init__("broker", Path(given) if given else None, **options)
        self._port = port
        self._server: Server | None = None
        self._stopping: asyncio.Event | None = None
        self._ended: asyncio.Task[None] | None = None
        self._faults: Faults | None = None

    @property
    def faults(self) -> Faults:
        """The faults of this broker, which are defined by rules. See `barnabas.testing.faults`."""
        if self._faults is None:
            # The module is loaded on first use, because most brokers never need faults.
            if self._is_process:
                from barnabas.testing.faults.distant_faults import DistantBrokerFaults

                self._faults = self._distant = DistantBrokerFaults(self._control_port)
                return self._faults
            from barnabas.testing.faults.broker_faults import Faults

            self._faults = Faults(self._call)
            # Attach the faults to a running broker. If it is not running, `_start` attaches them.
            if self._server is not None:
                self._faults.attach(self._server)
        return self._faults

    def pause(self) -> Paused:
        """Freeze the broker, as with SIGSTOP, until `resume`, the end of a `with` block, or `stop`.

            with broker.pause():
                assert application.place_order("tea") == "try again later"

        Connections stay open, and the kernel accepts new ones, but no request is answered and no
        timer runs. Requests sent during the pause are handled afterwards. After ten minutes, the
        broker resumes automatically, unless it runs in a separate process. Raises ConfigError if it
        is already paused or not running.
        """
        with self._life:
            if self._pause is not None:
                raise ConfigError("pause: the broker is already paused; call resume() first")
            child = self._child
            self._pause = ThreadPause(self.thread) if child is None else ProcessPause(child)
        return Paused(self.resume)

    def resume(self) -> None:
        """End a pause. Do nothing if the broker is not paused."""
        with self._life:
            self._go_on()

    def __repr__(self) -> str:
        where = self.bootstrap_servers if self.is_running else "not running"
        return f"<Broker {where}>"

    @property
    def bootstrap_servers(self) -> str:
        """The address for Kafka clients: `127.0.0.1:PORT`, or the address of the first entry in
        `listeners`.
        """
        return address(self._config, self.port)

    @property
    def port(self) -> int:
        # 0 means any free port, which is known only once it is bound.
        if not self.is_running or not self._port:
            raise self._is_not_running()
        return self._port

    @property
    def server(self) -> Server:
        """The running server. Use it only on the broker's loop."""
        if self._server is None:
            raise self._is_not_running()
        return self._server

    # ---- internal methods ----

    def _call(self, work: Callable[[], None]) -> None:
        """Call `work` on the loop, or in this thread while the loop is paused."""
        with self._life:
            if self._pause is not None:
                work()
                return
        self.thread.call(work)

    @property
    def _kind(self) -> SnapshotKind:
        from barnabas.testing.embedded.snapshot import SnapshotKind

        return SnapshotKind("broker", 1)

    def _one_directory(self, what: str) -> Path:
        # A snapshot is a copy of one directory.
        if "," in self._log_dirs:
            raise ConfigError(f"{what}: the data is in several directories: {self._log_dirs}")
        return self.data_dir

    def _arguments(self) -> dict[str, Any]:
        directory = None if self._log_dirs else str(self.data_dir)
        return {"data_dir": directory, "port": self._port, "config": self._config}

    def _ports_taken(self) -> int:
        return self._port

    def _take_ports(self, ports: int) -> None:
        self._port = ports

    # ---- methods that run on the loop ----

    async def _start(self) -> None:
        properties = {
            "broker.id": "0",
            **listener(self._secured, self._port),
            "log.dirs": str(self.data_dir),
            # Later entries override earlier ones, so the test's own configs come last.
            **({} if self._production_defaults else defaults_for_tests(1)),
            **self._config,
        }
        users = None if self._secured is None else self._secured.setup.passwords
        config = self._config_of(with_port(properties, self._port))
        server = Server(config, self._seams(), first_users=users)
        await server.start()
        server.watch_delays()
        assert server.failure is not None
        stopping = self._stopping = asyncio.Event()
        # A broker without a usable log directory stops by itself, as in Kafka (KIP-112).
        server.failure.add_done_callback(lambda _: stopping.set())
        self._server = server
        # Keep the port for the next start, because connected clients must find the broker again.
        self._port = server.port
        self._ended = asyncio.get_running_loop().create_task(_end(server, stopping))
        if self._faults is not None:
            self._faults.attach(server)

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is None:
            return  # the start failed, so there is nothing to stop
        if self._faults is not None:
            self._faults.detach(server.broker_id)
        assert self._stopping is not None and self._ended is not None
        self._stopping.set()
        await self._ended
        # The broker has failed; a test must not mistake this for a clean stop.
        if server.failure is not None and server.failure.done():
            raise OSError(server.failure.result())


async def _end(server: Server, stopping: asyncio.Event) -> None:
    """Stop the server on request, or when the broker cannot continue."""
    await stopping.wait()
    await server.stop()
