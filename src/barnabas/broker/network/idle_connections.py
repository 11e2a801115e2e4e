"""Closes connections that have been idle for `connections.max.idle.ms`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.network.router import Router
    from barnabas.clock import Clock

_LOOKS = 4  # checks per idle time
_SHORTEST_INTERVAL_MS = 100  # regardless of the configuration


class IdleConnections:
    """Closes idle connections, from `start` until `close`. A negative setting disables this."""

    __slots__ = ("_clock", "_config", "_routers", "_task")

    def __init__(self, config: CurrentConfig, clock: Clock, routers: Sequence[Router]) -> None:
        self._config = config
        self._clock = clock
        self._routers = routers
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._config.int("connections.max.idle.ms") >= 0:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def close(self) -> None:
        """Stop closing connections."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            idle_ms = self._config.int("connections.max.idle.ms")
            await asyncio.sleep(max(idle_ms // _LOOKS, _SHORTEST_INTERVAL_MS) / 1000)
            for router in self._routers:
                router.close_idle(self._clock.monotonic_ms(), idle_ms)
