"""Runs long requests in slices, so that the event loop can serve other connections between slices.

A handler that processes a list is a generator. It yields whenever `Pace` reports that the slice is
over, and finally returns its outcome. Most lists fit into a single slice and are answered
immediately.

Data may change between two slices, so a handler must then read again the data that it depends on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable
from typing import Any, TypeVar, cast

T = TypeVar("T")

SLICE_ENTRIES = 100
"""The number of entries in a slice. At twenty microseconds per entry, a slice takes two
milliseconds.
"""

_FREED_ENTRIES = 5_000
"""The number of entries that are freed in a slice. Each takes less than a tenth of a microsecond.
"""

Slices = Generator[None, None, T]


class Pace:
    """Counts the entries that a request has processed in the current slice."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = 0

    def begin(self) -> None:
        """Start a new slice, and reset the count."""
        self._done = 0

    def is_over(self, entries: int = 1) -> bool:
        """Count these entries, or work that costs the same. Return whether the slice is over."""
        self._done += entries
        if self._done < SLICE_ENTRIES:
            return False
        self._done = 0
        return True


async def in_slices(entries: Iterable[T]) -> AsyncIterator[T]:
    """Yield the entries one by one, with pauses in which other connections are served.

    Use this function in handlers that may have to await something for each entry.
    """
    pace = Pace()
    for entry in entries:
        yield entry
        if pace.is_over():
            await asyncio.sleep(0)


def clear_in_slices(entries: list[Any]) -> Slices[None]:
    """Empty a list in slices, because freeing all entries at once would delay other connections."""
    # Delete from the end of the list, so that no entries have to be moved.
    while len(entries) > _FREED_ENTRIES:
        del entries[-_FREED_ENTRIES:]
        yield
    entries.clear()


def run_slices(slices: Slices[T]) -> T | Coroutine[Any, Any, Any]:
    """Return the outcome of the handler, or a coroutine if the handler needs more than
    one slice.
    """
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
    # The last slice of a handler may return a coroutine, which has to be awaited.
    return await outcome if asyncio.iscoroutine(outcome) else outcome
