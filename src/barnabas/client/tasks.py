"""Supervises the tasks of a client. If a task fails because of a bug, the client fails visibly.

A task handles expected errors itself. An unexpected error ends the task and is logged once. The
listeners then fail all waiting callers, and all records that have no outcome yet, with this error
as the cause. The client can no longer be used, and every call raises an error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec

from barnabas.client.errors import ClientFailed
from barnabas.shielded import again

_log = logging.getLogger(__name__)

P = ParamSpec("P")

_SLOW_S = 1.0


class Tasks:
    """The tasks of a client, and the first unexpected error in any of them."""

    def __init__(self, client_id: str) -> None:
        self._client_id = client_id
        self._listeners: list[Callable[[ClientFailed], None]] = []
        self.error: ClientFailed | None = None

    def add_failure_listener(self, listener: Callable[[ClientFailed], None]) -> None:
        """Register a listener to call when the first task fails. The listener must not raise."""
        self._listeners.append(listener)

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `work` in a separate task, which the caller may cancel."""
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(lambda done: self._on_end(name, done))
        return task

    def guard(self, name: str, function: Callable[P, None]) -> Callable[P, None]:
        """Wrap a function that is called by the loop, which would only log its exceptions."""

        def call(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except Exception as error:
                self.fail(name, error)

        return call

    @contextmanager
    def slow(self, what: str) -> Iterator[None]:
        """If the block takes longer than a second, log once what it is waiting for."""
        timer = asyncio.get_running_loop().call_later(
            _SLOW_S, _log.warning, "client %r: %s", self._client_id, what
        )
        try:
            yield
        finally:
            timer.cancel()

    def check(self) -> None:
        """Raise ClientFailed if a task has failed."""
        if self.error is not None:
            raise again(self.error)

    def fail(self, name: str, cause: Exception) -> None:
        """Fail the client, because `name` has failed with this unexpected error."""
        if self.error is not None:
            _log.error("client %r: %s also failed", self._client_id, name, exc_info=cause)
            return
        self.error = ClientFailed(f"{name} failed because of a bug in the client: {cause!r}")
        self.error.__cause__ = cause
        _log.critical("client %r: %s failed", self._client_id, name, exc_info=cause)
        for listener in self._listeners:
            listener(self.error)

    def _on_end(self, name: str, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self.fail(name, error)
