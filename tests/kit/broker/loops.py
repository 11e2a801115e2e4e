"""A broker's own loop and its logs, from a test's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas import Broker
from tests.kit.raw_client import PATIENCE_S


def log_of(node: Broker, topic: str = "t") -> Any:
    return node.server.node.replicas.leader_of((topic, 0)).log


def on_loop(node: Broker, action: Callable[[], Any]) -> Any:
    """On the broker's own loop, between two requests."""

    async def run() -> Any:
        return action()

    return node.thread.run(run(), PATIENCE_S)
