"""Waiting for work that goes on, and may fail, when no one waits for it any more, or several do."""

from __future__ import annotations

import asyncio
from copy import copy
from typing import Any, TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


def shielded(future: asyncio.Future[T]) -> asyncio.Future[T]:
    """A future that ends as another one does, and leaves it alone when it is itself cancelled.

    That is `asyncio.shield`, whose Python 3.14 logs an error that comes after the cancellation,
    with a traceback: of every request that a client has given up. Who starts the work adds
    `retrieve_error` to it if no one else is sure to await it.
    """
    if future.done():
        return future
    waiter: asyncio.Future[T] = future.get_loop().create_future()

    def end(done: asyncio.Future[T]) -> None:
        error = None if done.cancelled() else done.exception()  # looked at in any case
        if waiter.cancelled():
            return
        if done.cancelled():
            waiter.cancel()
        elif error is not None:
            waiter.set_exception(again(error))
        else:
            waiter.set_result(done.result())

    def forget(_: asyncio.Future[T]) -> None:
        if not future.done():
            future.remove_done_callback(end)

    future.add_done_callback(end)
    waiter.add_done_callback(forget)
    return waiter


def retrieve_error(done: asyncio.Future[Any]) -> None:
    """Retrieve an error that no one may wait for, lest asyncio log it as never retrieved."""
    if not done.cancelled():
        done.exception()


def again(error: E) -> E:
    """A copy to raise: one object that many raise would collect the tracebacks of all of them, and
    hold their frames."""
    try:
        copied = copy(error)
    except Exception:  # of a user's class, which cannot be made of its own arguments
        return error
    copied.__cause__ = error.__cause__
    copied.__suppress_context__ = error.__suppress_context__
    return copied
