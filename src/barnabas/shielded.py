"""Waits for shared work that continues, and may fail, after its waiters have gone."""

from __future__ import annotations

import asyncio
from copy import copy
from typing import Any, TypeVar

T = TypeVar("T")
E = TypeVar("E", bound=BaseException)


def shielded(future: asyncio.Future[T]) -> asyncio.Future[T]:
    """Return a future that ends like `future` but does not cancel it when it is itself cancelled.

    This is `asyncio.shield`, which in Python 3.14 logs an error that comes after the cancellation,
    with a traceback, and so once for every request that a client has given up on. The code that
    starts the work adds `retrieve_error` to it unless something is sure to await it.
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
    """Retrieve an error that may have no waiter, so that asyncio does not log it as never
    retrieved.
    """
    if not done.cancelled():
        done.exception()


def again(error: E) -> E:
    """Return a copy to raise: a single object raised by many would collect all their tracebacks and
    keep their frames alive.
    """
    try:
        copied = copy(error)
    except Exception:  # an error of a user's class, which cannot be created from its own arguments
        return error
    copied.__cause__ = error.__cause__
    copied.__suppress_context__ = error.__suppress_context__
    return copied
