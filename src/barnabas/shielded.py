"""Waits for shared work, which continues and may fail after its waiters have gone."""

from __future__ import annotations

import asyncio
from copy import copy
from typing import Any, TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


def shielded(future: asyncio.Future[T]) -> asyncio.Future[T]:
    """Return a future with the same outcome as `future`. Cancelling the returned future does not
    cancel `future`.

    This replaces `asyncio.shield`. In Python 3.14, `asyncio.shield` logs an error that occurs after
    the cancellation, with a traceback, which would happen for every request that a client has given
    up on. The code that starts the work adds `retrieve_error` to its future unless something is
    sure to await it.
    """
    if future.done():
        return future
    waiter: asyncio.Future[T] = future.get_loop().create_future()

    def end(done: asyncio.Future[T]) -> None:
        error = None if done.cancelled() else done.exception()  # always retrieved
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
    """Retrieve an error that may have no waiter, because asyncio would otherwise log that the error
    was never retrieved.
    """
    if not done.cancelled():
        done.exception()


def again(error: E) -> E:
    """Return a copy of the error to raise. An error object raised by many waiters would collect all
    their tracebacks and keep their frames alive.
    """
    try:
        copied = copy(error)
    except Exception:  # an error of a user's class, which cannot be created from its own arguments
        return error
    copied.__cause__ = error.__cause__
    copied.__suppress_context__ = error.__suppress_context__
    return copied
