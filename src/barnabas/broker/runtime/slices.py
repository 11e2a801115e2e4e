"""Runs long requests in slices, so that the event loop can serve other connections in between.

A handler that processes a list is a generator: it yields when `Pace` reports the end of a slice,
and returns its outcome. Most lists fit into one slice and are answered immediately.

Data may change between two slices, so a handler must reread the data that it depends on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable
from typing import Any, TypeVar, cast

T = TypeVar("T")

SLICE_ENTRIES = 100
"""The number of entries per slice. At twenty microseconds each, a slice takes two milliseconds."""

_FREED_ENTRIES = 5_000
"""The number of entries freed per slice. Each takes less than a tenth of a microsecond."""

Slices = Generator[None, None, T]


class Pace:
    """Counts the entries that a request has processed in its current slice."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = 0

    def begin(self) -> None:
        """Start a new slice, and reset the count."""
        self._done = 0

    def is_over(self, entries: int = 1) -> bool:
        """Count these entries, or work of equal cost; return whether the slice is over."""
        self._done += entries
        if self._done < SLICE_ENTRIES:
            return False
        self._done = 0
        return True


async def in_slices(entries: Iterable[T]) -> AsyncIterator[T]:
    """Yield the entries one by one, with pauses for other connections.

    Use this in handlers that may await something for each entry.
    """
    pace = Pace()
    for entry in entries:
        yield entry
        if pace.is_over():
            await asyncio.sleep(0)


def clear_in_slices(entries: list[Any]) -> Slices[None]:
    """Empty a list in slices: freeing all entries together would delay other connections."""
    # Delete from the end, so that no entries are moved.
    while len(entries) > _FREED_ENTRIES:
        del entries[-_FREED_ENTRIES:]
        yield
    entries.clear()


def run_slices(slices: Slices[T]) -> T | Coroutine[Any, Any, Any]:
    """Return the handler's outcome, or a coroutine if it needs more than one slice."""
    try:
        next(slices)
    except StopIteration as end:
        return cast(T, end.value)
    return _rest(slices)


async def _rest(slices: Slices[Any]) -> Any:
    try:
        while True:
            await asyncio.sleep(0)
            next(slices)
    except StopIteration as end:
        outcome = end.value
    finally:
        slices.close()
    # A handler's slices may end in a coroutine to await.
    return await outcome if asyncio.iscoroutine(outcome) else outcome
