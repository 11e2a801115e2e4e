"""Waiting for the controller: the work outlives its client."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import suppress

import pytest

from barnabas.broker.controller.deadline import within
from barnabas.errors import InvalidTopic, RequestTimedOut


def test_what_is_done_in_time_is_returned() -> None:
    async def refuse() -> None:
        raise InvalidTopic("no")

    async def scenario() -> None:
        assert await within(60_000, asyncio.sleep(0, "done")) == "done"
        for timeout_ms in (60_000, 0, -1):
            with pytest.raises(InvalidTopic):
                await within(timeout_ms, refuse())

    asyncio.run(scenario())


def test_an_error_leaves_no_cycle_that_holds_the_request() -> None:
    """A request of a hundred thousand entries would stay until the collector looks at them all."""

    class Entries(list[int]):
        pass

    async def refuse(entries: Entries) -> None:
        raise InvalidTopic("no")

    async def scenario() -> weakref.ref[Entries]:
        entries = Entries()
        with suppress(InvalidTopic):
            await within(60_000, refuse(entries))
        return weakref.ref(entries)

    gc.disable()
    try:
        assert asyncio.run(scenario())() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("hangs_up", [False, True])
def test_what_takes_longer_goes_on(hangs_up: bool) -> None:
    async def scenario() -> None:
        go_on, is_done = asyncio.Event(), asyncio.Event()

        async def work() -> None:
            await go_on.wait()
            is_done.set()

        waiting = asyncio.ensure_future(within(1, work()))
        if hangs_up:
            await asyncio.sleep(0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        else:
            with pytest.raises(RequestTimedOut, match="it continues"):
                await waiting
        go_on.set()
        await asyncio.wait_for(is_done.wait(), 60)

    asyncio.run(scenario())
