"""A broker's own loop and its logs, from a test's thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from barnabas import Broker
from tests.kit.raw_client import PATIENCE_S


def log_of(node: Broker, topic: str = "t") -> Any:
    assert node._server is not None
    return node._server.node.replicas.leader_of((topic, 0)).log


def on_loop(node: Broker, action: Callable[[], Any]) -> Any:
    """On the broker's own loop, between two requests."""

    async def run() -> Any:
        return action()

    assert node._loop is not None
    return asyncio.run_coroutine_threadsafe(run(), node._loop).result(PATIENCE_S)
