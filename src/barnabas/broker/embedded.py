"""A broker inside this process: for tests, notebooks and programs that want no server.

    with barnabas.Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

A thread of its own runs a loop of its own; several brokers may live side by side. Nothing at
module level is shared and no signal handler is set.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from barnabas.broker.server import Server
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError
from barnabas.net.loop import new_event_loop

_START_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 60.0


class Broker:
    """A one-node broker on 127.0.0.1.

    `data_dir`: where the log lives; None makes a temporary directory that goes with the broker,
    unless `config` has `log.dirs`.
    `port`: 0 takes a free one. `config`: Kafka's broker configs, by their names.

    `start` raises ConfigError or OSError with one line that says what to do. A broker that was
    stopped may be started again, on the same directory unless that was temporary.
    """

    def __init__(
        self,
        data_dir: str | Path | None = None,
        port: int = 0,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self._config = dict(config or {})
        log_dirs = self._config.get("log.dirs", "")
        if data_dir is not None and log_dirs:
            raise ConfigError(f"data_dir={data_dir} and log.dirs={log_dirs}: give one of the two")
        given = data_dir or log_dirs.split(",")[0].strip()
        self._given_dir = Path(given) if given else None
        self._port = port
        self._temporary_dir: Path | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._stopping: asyncio.Event | None = None
        self._failure: BaseException | None = None

    # ---- life ----

    def start(self) -> Broker:
        """Return when the broker serves."""
        if self._thread is not None:
            raise ConfigError("this broker has been started already")
        if self._given_dir is None:
            self._temporary_dir = Path(tempfile.mkdtemp(prefix="barnabas-"))
        self._failure = None
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(started,), name="barnabas-broker", daemon=True
        )
        self._thread.start()
        if not started.wait(_START_TIMEOUT_S):
            raise TimeoutError(f"the broker did not start within {_START_TIMEOUT_S:g} s")
        if self._failure is not None:
            failure = self._failure
            self._forget()
            raise failure
        return self

    def stop(self) -> None:
        """A clean stop; nothing happens when the broker is not running."""
        if self._thread is None:
            return
        if self._loop is not None and self._stopping is not None:
            with suppress(RuntimeError):  # the loop is closed: it had to stop by itself
                self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(_STOP_TIMEOUT_S)
        if self._thread.is_alive():
            raise TimeoutError(f"the broker did not stop within {_STOP_TIMEOUT_S:g} s")
        failure = self._failure
        self._forget()
        if failure is not None:
            raise failure

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # ---- what it offers ----

    @property
    def bootstrap_servers(self) -> str:
        """`127.0.0.1:PORT`, for any Kafka client."""
        return f"127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        if self._server is None:
            raise ConfigError("the broker is not running: use it in a with block, or call start()")
        return self._server.port

    @property
    def data_dir(self) -> Path:
        """Where the log lives: the first directory, if there are several."""
        directory = self._given_dir or self._temporary_dir
        if directory is None:
            raise ConfigError("the broker is not running, and its directory is a temporary one")
        return directory

    # ---- its thread ----

    def _run(self, started: threading.Event) -> None:
        try:
            with asyncio.Runner(loop_factory=new_event_loop) as runner:
                runner.run(self._serve(started))
        except BaseException as error:
            self._failure = error
        finally:
            started.set()

    async def _serve(self, started: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        stopping = self._stopping = asyncio.Event()
        config = BrokerConfig(
            {
                "broker.id": "0",
                "listeners": f"PLAINTEXT://127.0.0.1:{self._port}",
                "log.dirs": str(self.data_dir),
                **self._config,
            }
        )
        if self._temporary_dir is not None:
            # That the data is in a temporary directory is what was asked for.
            config.warnings = [w for w in config.warnings if str(self._temporary_dir) not in w]
        server = Server(config)
        await server.start()
        self._server = server
        assert server.failure is not None
        server.failure.add_done_callback(lambda _: stopping.set())
        started.set()
        try:
            await stopping.wait()
        finally:
            await server.stop()
        if server.failure.done():
            raise OSError(server.failure.result())

    def _forget(self) -> None:
        self._thread = None
        self._loop = None
        self._server = None
        self._stopping = None
        self._failure = None
        if self._temporary_dir is not None:
            shutil.rmtree(self._temporary_dir, ignore_errors=True)
            self._temporary_dir = None
