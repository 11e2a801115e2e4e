"""Work outlasts those who wait for it, and its error is for them alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.shielded import retrieve_error, shielded


def test_a_wait_that_is_cancelled_leaves_the_work_alone() -> None:
    async def scenario() -> list[dict[str, Any]]:
        logged: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: logged.append(said))
        work: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(shielded(work), 0.001)
        assert not work.done()
        work.set_exception(OSError("too late"))
        await asyncio.sleep(0)
        assert isinstance(work.exception(), OSError)
        return logged

    assert asyncio.run(scenario()) == []


@pytest.mark.parametrize("is_done", [True, False])
def test_a_wait_ends_as_the_work_does(is_done: bool) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        for end, expected in (
            (lambda work: work.set_result(7), 7),
            (lambda work: work.set_exception(OSError("it failed")), OSError),
            (lambda work: work.cancel(), asyncio.CancelledError),
        ):
            work = loop.create_future()
            if is_done:
                end(work)
            else:
                loop.call_soon(end, work)
            if isinstance(expected, int):
                assert await shielded(work) == expected
            else:
                with pytest.raises(expected):
                    await shielded(work)

    asyncio.run(scenario())


@pytest.mark.parametrize("is_retrieved", [True, False])
def test_an_error_that_is_retrieved_is_not_logged(is_retrieved: bool) -> None:
    async def scenario() -> list[str]:
        logged: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, said: logged.append(said["message"]))
        work: asyncio.Future[int] = loop.create_future()
        if is_retrieved:
            work.add_done_callback(retrieve_error)
        work.set_exception(OSError("it failed"))
        await asyncio.sleep(0)
        del work  # what was never retrieved is logged at its end
        return logged

    expected = [] if is_retrieved else ["Future exception was never retrieved"]
    assert asyncio.run(scenario()) == expected
