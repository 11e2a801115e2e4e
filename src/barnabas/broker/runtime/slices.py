"""Long requests in slices: between two of them other connections have a turn of the event loop.

A handler that works through a list is a generator: it yields where `Pace` says that a slice is
over, and returns its outcome. A short list, as nearly all are, is one slice and answered at
once.

What a handler has read may have changed by its next slice; a handler that depends on it reads it
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable
from typing import Any, TypeVar, cast

T = TypeVar("T")

SLICE_ENTRIES = 100
"""Entries of a request in one slice: at twenty microseconds each, two milliseconds."""

_FREED_ENTRIES = 5_000
"""In one slice: to free one takes less than a tenth of a microsecond."""

Slices = Generator[None, None, T]


class Pace:
    """The entries that one request has worked through in its present slice."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done = 0

    def begin(self) -> None:
        """Begin a slice: what was counted belongs to an earlier one."""
        self._done = 0

    def is_over(self, entries: int = 1) -> bool:
        """Count these entries, or what costs as much as they; return whether the slice is over."""
        self._done += entries
        if self._done < SLICE_ENTRIES:
            return False
        self._done = 0
        return True


async def in_slices(entries: Iterable[T]) -> AsyncIterator[T]:
    """Yield the entries one after the other, with turns for other connections in between.

    It suits handlers that await each entry, or might.
    """
    pace = Pace()
    for entry in entries:
        yield entry
        if pace.is_over():
            await asyncio.sleep(0)


def clear_in_slices(entries: list[Any]) -> Slices[None]:
    """Empty a list in slices: to free all entries at once would hold up other connections."""
    # From the end, where nothing has to be moved up.
    while len(entries) > _FREED_ENTRIES:
        del entries[-_FREED_ENTRIES:]
        yield
    entries.clear()


def run_slices(slices: Slices[T]) -> T | Coroutine[Any, Any, Any]:
    """Return the outcome of a handler that needs one slice; else a coroutine that returns it."""
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
    # A handler's slices may end with what it waits for.
    return await outcome if asyncio.iscoroutine(outcome) else outcome
