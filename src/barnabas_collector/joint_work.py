"""Runs several coroutines that end together."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")


async def run_together(stopping: asyncio.Event, *work: Coroutine[object, object, T]) -> list[T]:
    """Run all coroutines and return their results.

    The first failure cancels the others and is then raised.
    """
    failures: list[BaseException] = []

    async def watch(each: Coroutine[object, object, T]) -> T:
        try:
            return await each
        except BaseException as error:
            failures.append(error)
            stopping.set()
            raise

    done = await asyncio.gather(*map(watch, work), return_exceptions=True)
    if failures:
        raise failures[0]
    return [each for each in done if not isinstance(each, BaseException)]
