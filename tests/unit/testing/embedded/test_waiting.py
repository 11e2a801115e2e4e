"""Waiting ends by what was seen, by a deadline, or by an error that waiting cannot change."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client.errors import ConnectionLost
from barnabas.errors import GroupAuthorizationFailed, KafkaError, NotLeaderOrFollower
from barnabas.testing.embedded.waiting import Sight, WaitTimeout, wait_until


def test_tk_3_the_first_look_that_holds_ends_it() -> None:
    counted = iter(range(10))

    async def look() -> Sight[int]:
        count = next(counted)
        return Sight(count, count == 3, f"{count}")

    assert asyncio.run(wait_until(look, "a three", 60)) == 3


def test_tk_3_time_up_says_what_was_wanted_and_what_was_seen() -> None:
    async def look() -> Sight[None]:
        return Sight(None, False, "two of them")

    with pytest.raises(WaitTimeout, match=r"^waited 0\.02 s for three, and saw .*: two of them$"):
        asyncio.run(wait_until(look, "three", 0.02))


class _Leaping(asyncio.SelectorEventLoop):
    """A loop whose time a test moves on."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


@pytest.mark.parametrize("is_moving", [True, False])
def test_tk_3_as_long_as_there_is_progress_there_is_time(is_moving: bool) -> None:
    """A slow machine needs longer for thousands of partitions, and gets there."""
    loop = _Leaping()
    counted = iter(range(1, 10))

    async def look() -> Sight[int]:
        count = next(counted)
        loop.ahead_s += 40
        return Sight(count, count == 5, f"{count}", count if is_moving else 1)

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        if is_moving:
            assert runner.run(wait_until(look, "a five", 60)) == 5
        else:
            with pytest.raises(WaitTimeout, match="for a five, and saw instead"):
                runner.run(wait_until(look, "a five", 60))


def test_tk_3_a_look_that_never_ends_is_over_in_time() -> None:
    async def look() -> Sight[None]:
        await asyncio.Event().wait()
        raise AssertionError("it ended")

    with pytest.raises(WaitTimeout, match="saw instead: no answer"):
        asyncio.run(wait_until(look, "three", 0.02))


@pytest.mark.parametrize("error", [ConnectionLost("gone"), NotLeaderOrFollower("elsewhere")])
def test_tk_3_what_may_pass_is_waited_for_and_shown(error: Exception) -> None:
    left = [error, error]

    async def look() -> Sight[str]:
        if left:
            raise left.pop()
        return Sight("there", True, "")

    assert asyncio.run(wait_until(look, "it", 60)) == "there"

    async def fails() -> Sight[str]:
        raise error

    with pytest.raises(WaitTimeout, match=f"saw instead: .*{error}"):
        asyncio.run(wait_until(fails, "it", 0.02))


def test_tk_3_what_waiting_cannot_change_is_raised_at_once() -> None:
    async def look() -> Sight[None]:
        raise GroupAuthorizationFailed("not yours")

    with pytest.raises(KafkaError, match="not yours"):
        asyncio.run(wait_until(look, "it", 60))
