"""CO-2: a listener of a blocking consumer runs in the user's thread, and may use the consumer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from barnabas.client.loop_thread import LoopThread
from barnabas.client.sync.user_thread import UserThread

PATIENCE_S = 10


@pytest.fixture
def user() -> Iterator[UserThread]:
    thread = LoopThread("user-thread")
    yield UserThread(thread)
    thread.stop()


def test_calls_run_in_the_thread_that_waits(user: UserThread) -> None:
    seen: list[threading.Thread] = []

    async def work() -> str:
        await user.call(lambda: seen.append(threading.current_thread()))
        return "done"

    assert user.run(work()) == "done"
    assert seen == [threading.current_thread()]


def test_work_inside_of_a_call_leaves_the_outer_work_its_calls(user: UserThread) -> None:
    """A listener that polls is refused, and the next listener is called all the same."""
    seen: list[str] = []

    async def refuse() -> None:
        raise RuntimeError("one poll at a time")

    def listen() -> None:
        with pytest.raises(RuntimeError, match="one poll"):
            user.run(refuse())
        seen.append("revoked")

    async def work() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await user.call(listen)
            await user.call(lambda: seen.append("assigned"))

    user.run(work())
    assert seen == ["revoked", "assigned"]


def test_what_a_call_raises_comes_out_of_the_work(user: UserThread) -> None:
    def fail() -> None:
        raise ValueError("of the listener")

    async def work() -> None:
        await user.call(fail)

    with pytest.raises(ValueError, match="of the listener"):
        user.run(work())
