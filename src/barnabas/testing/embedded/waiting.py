"""Waits for a broker to reach a state, by checking repeatedly until the state is reached or time is
up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar

from barnabas.client.errors import Unreachable
from barnabas.errors import KafkaError

T = TypeVar("T")

_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.1


class WaitTimeout(AssertionError):
    """Raised when a wait times out. The message describes the state that was found instead."""


WaitTimeout.__module__ = "barnabas.testing"  # the module under which it is documented


def is_wait_timeout(failure: Any) -> bool:
    """Return True to make pytest hide the frames of a module whose `__tracebackhide__` is this
    function.

    Readers need only the line of the test that waited; `--full-trace` shows the other frames.
    """
    return failure is not None and isinstance(failure.value, WaitTimeout)


class Sight(NamedTuple, Generic[T]):
    """The result of one check."""

    value: T
    holds: bool  # whether the condition is true
    seen: str  # for the message, if it is not
    progress: object = None  # whenever this changes, the wait is extended


async def wait_until(look: Callable[[], Awaitable[Sight[T]]], wanted: str, timeout_s: float) -> T:
    """Check repeatedly for the wanted state, and return the value of the first check that finds it.

    `wanted` describes the state, as in "topic 't' with 3 records". If a broker cannot be reached,
    or responds with a transient error, the check is repeated. Raises WaitTimeout after `timeout_s`
    without progress, and any other error immediately.
    """
    seen, progress = "no answer", None
    pause_s = _FIRST_PAUSE_S
    try:
        async with asyncio.timeout(timeout_s) as limit:
            while True:
                try:
                    sight = await look()
                except (Unreachable, KafkaError) as error:
                    # Another check would fail in the same way.
                    if isinstance(error, KafkaError) and not error.retriable:
                        raise
                    seen = str(error)
                else:
                    if sight.holds:
                        return sight.value
                    seen = sight.seen
                    # Progress restarts the timeout, because a slow disk must not cause a test to
                    # fail.
                    if sight.progress is not None and sight.progress != progress:
                        progress = sight.progress
                        limit.reschedule(asyncio.get_running_loop().time() + timeout_s)
                await asyncio.sleep(pause_s)
                # Most states are reached within milliseconds. For all others, a busy loop is not
                # worthwhile.
                pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
    except TimeoutError:
        if not limit.expired():
            raise
        raise WaitTimeout(f"waited {timeout_s:g} s for {wanted}, and saw instead: {seen}") from None
