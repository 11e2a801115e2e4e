"""A loop that stands still, and goes on with what came meanwhile."""

from __future__ import annotations

import threading

from barnabas.client.loop_thread import LoopThread
from barnabas.testing.embedded.pause import Paused, ThreadPause
from tests.kit.raw_client import PATIENCE_S


def test_nothing_happens_on_a_blocked_loop_until_it_is_resumed() -> None:
    thread = LoopThread("paused")
    came = threading.Event()
    with Paused(ThreadPause(thread).resume):
        thread.call_soon(came.set)
        assert not came.wait(0.05)
    assert came.wait(PATIENCE_S)
    thread.stop()
