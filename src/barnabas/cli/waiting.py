"""Reports on standard error what a command is waiting for, but only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from threading import Timer
from types import TracebackType
from typing import Any, TypeVar

from barnabas.errors import BarnabasError

T = TypeVar("T")

_AFTER_S = 2.0


async def soon(question: Coroutine[Any, Any, T], otherwise: T) -> T:
    """Return the response to a request on which the rest of the output does not depend. Return
    `otherwise` if the brokers reject the request or take longer than two seconds.
    """
    # Imported only here, because this module is also loaded by commands without an event loop.
    import asyncio

    try:
        async with asyncio.timeout(_AFTER_S):
            return await question
    except (BarnabasError, TimeoutError):
        return otherwise


class Waiting:
    """Prints once what its `with` block is waiting for, if the wait exceeds two seconds.

    with Waiting("broker 1 to stop"):
        ...
    """

    def __init__(self, what: str | Callable[[], str]) -> None:
        self._what = what
        self._timer: Timer | None = None

    def __enter__(self) -> Waiting:
        # The notice does not belong in a script's log.
        if sys.stderr is not None and sys.stderr.isatty():
            self._timer = Timer(_AFTER_S, self._say)
            # The timer must not keep the process alive.
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """Stop waiting, because the awaited event has occurred."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say(self) -> None:
        what = self._what if isinstance(self._what, str) else self._what()
        sys.stderr.write(f"waiting for {what}; press Ctrl-C to stop\n")
        sys.stderr.flush()
