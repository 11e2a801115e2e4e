"""The life cycle of the embedded `Broker` and `Cluster`: a directory, a loop in a thread, start and
stop.

Invariant: the thread and the temporary directory, if there is one, exist from `start` to `stop` and
at no other time, even if either fails.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from barnabas.client.loop_thread import LoopThread
from barnabas.config import BrokerConfig
from barnabas.errors import ConfigError

_PATIENCE_S = 60.0


Setting = str | int | float | bool | os.PathLike[str]
"""A broker config's value as a program writes it."""

DEFAULTS: Final = {"group.initial.rebalance.delay.ms": "0"}
"""Defaults that differ from Kafka's: a test does not wait for a group's other members."""


def texts(config: Mapping[str, Setting] | None) -> dict[str, str]:
    """Configs as in a properties file. Raises ConfigError for a value that no file could have."""
    return {name: _text(name, value) for name, value in (config or {}).items()}


def _text(name: str, value: Setting) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise ConfigError(f"{name}: {value!r} is not a text, a number, a path, True or False")


class EmbeddedLife(ABC):
    """Starts and stops what a subclass runs.

    `noun`: its name in messages. `directory`: None makes a temporary one.
    """

    def __init__(self, noun: str, directory: Path | None) -> None:
        self._noun = noun
        self._given_dir = directory
        self._temporary_dir: Path | None = None
        self._thread: LoopThread | None = None

    def start(self) -> Self:
        """Start, and return when it serves."""
        thread = self._begin()
        try:
            thread.run(self._in_time(self._start(), "start"))
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop cleanly; do nothing if it is not running."""
        if self._thread is None:
            return
        try:
            self._thread.run(self._in_time(self._stop(), "stop"))
        finally:
            self._end()

    def _begin(self) -> LoopThread:
        if self._thread is not None:
            raise ConfigError(f"this {self._noun} is already running")
        if self._given_dir is None:
            self._temporary_dir = Path(tempfile.mkdtemp(prefix="barnabas-"))
        self._thread = LoopThread(f"barnabas-{self._noun}")
        return self._thread

    def _end(self) -> None:
        assert self._thread is not None
        self._thread.stop()
        self._thread = None
        if self._temporary_dir is not None:
            shutil.rmtree(self._temporary_dir, ignore_errors=True)
            self._temporary_dir = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        """As `with`, without blocking the caller's loop."""
        thread = self._begin()
        try:
            await asyncio.wrap_future(thread.submit(self._in_time(self._start(), "start")))
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._thread is None:
            return
        stopped = asyncio.wrap_future(self._thread.submit(self._in_time(self._stop(), "stop")))
        try:
            await asyncio.shield(stopped)
        except asyncio.CancelledError:
            # A caller that is cancelled here must not leave half a broker behind.
            await asyncio.gather(stopped, return_exceptions=True)
            raise
        finally:
            self._end()

    @property
    def data_dir(self) -> Path:
        """The directory with the data."""
        directory = self._given_dir or self._temporary_dir
        if directory is None:
            raise ConfigError(
                f"the {self._noun} is not running, and its directory is a temporary one"
            )
        return directory

    @property
    def thread(self) -> LoopThread:
        """The thread and the loop of everything that runs here; ConfigError if nothing does."""
        if self._thread is None:
            raise self._is_not_running()
        return self._thread

    def _is_not_running(self) -> ConfigError:
        return ConfigError(
            f"the {self._noun} is not running: use it in a with block, or call start()"
        )

    # ---- on its loop ----

    @abstractmethod
    async def _start(self) -> None:
        """Return when it serves; after a failure `_stop` ends what was begun."""

    @abstractmethod
    async def _stop(self) -> None:
        """End what `_start` has begun."""

    def _config_of(self, properties: Mapping[str, str]) -> BrokerConfig:
        config = BrokerConfig(properties)
        if self._temporary_dir is not None:
            # The caller chose a temporary directory: no need to warn of it.
            config.warnings = [w for w in config.warnings if str(self._temporary_dir) not in w]
        return config

    async def _in_time(self, work: Coroutine[Any, Any, None], what: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S) as limit:
                await work
        except TimeoutError:
            if not limit.expired():
                raise
            raise TimeoutError(
                f"the {self._noun} did not {what} within {_PATIENCE_S:g} s"
            ) from None
