"""The loops on which connections are tested."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from barnabas.net.loop import new_event_loop
from tests.kit.connected_sockets import PATIENCE_S


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[..., object]:
    """Runs a coroutine on each kind of loop."""
    factory = asyncio.new_event_loop if request.param == "asyncio" else new_event_loop

    def runner(coroutine):  # type: ignore[no-untyped-def]
        with asyncio.Runner(loop_factory=factory) as loop_runner:
            return loop_runner.run(asyncio.wait_for(coroutine, 2 * PATIENCE_S))

    return runner
