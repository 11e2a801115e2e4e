"""What waits for the brokers has a limit."""

from __future__ import annotations

import asyncio

from barnabas_collector.bundle import Bundle, Origin
from barnabas_collector.inbox import Inbox

ORIGIN = Origin(b"key", ())


def test_it_is_full_until_half_of_it_is_sent() -> None:
    async def run() -> None:
        inbox = Inbox(most_bytes=10_000)
        bundles = [Bundle(ORIGIN, [b"x" * 1_000]) for _ in range(7)]
        inbox.add(bundles)
        assert inbox.is_full and inbox.count == 7
        taken = await inbox.take()
        assert taken == bundles and inbox.count == 0
        assert inbox.is_full, "what was taken is not sent yet"
        waiting = asyncio.create_task(inbox.room())
        inbox.release(taken[:3])
        await asyncio.sleep(0)
        assert not waiting.done() and not inbox.is_full
        inbox.release(taken[3:])
        await asyncio.wait_for(waiting, 10)

    asyncio.run(run())


def test_what_comes_soon_after_the_first_is_taken_with_it() -> None:
    async def run() -> None:
        inbox = Inbox()
        taking = asyncio.create_task(inbox.take())
        bundles = [Bundle(ORIGIN, [b"%d" % number]) for number in range(10)]
        for bundle in bundles:
            inbox.add([bundle])
            await asyncio.sleep(0)
        assert await asyncio.wait_for(taking, 10) == bundles
        inbox.end()
        assert await inbox.take() == []

    asyncio.run(run())
