"""Sends and retries requests for the classes that make up `Admin`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from barnabas.client.channel import BrokerAddress
from barnabas.client.cluster import Cluster

T = TypeVar("T")


class AdminCalls:
    """Base of the classes that make up `Admin`. Sends their requests and retries them."""

    _cluster: Cluster

    async def _persist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Retry transient errors for `default.api.timeout.ms`."""
        return await self._cluster.persist(attempt, self._cluster.config.default_api_timeout_ms)

    async def _ask_each_broker(self, ask: Callable[[BrokerAddress], Awaitable[None]]) -> None:
        """Send a request to all brokers at once, and retry each request until it is answered."""
        nodes = self._cluster.metadata.view.nodes.values()
        await asyncio.gather(*(self._persist(partial(ask, node)) for node in nodes))
