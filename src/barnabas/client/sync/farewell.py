"""Ends a blocking client that the program did not close.

    dropped: __del__ (any thread, even the loop's) --> begin         nothing waits
    exit:    atexit (main thread, the loop still runs) --> begin, then wait

A forked child of `multiprocessing` ends with `os._exit`, which skips atexit, so the finalizers of
multiprocessing are used in such a process. Accepted records are flushed within a time limit, and a
line on stderr reports how many were not acknowledged.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import sys
import threading
import warnings
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

from barnabas.client.loop_thread import LoopThread
from barnabas.client.lost_records import say_lost

MOST_S: Final = 10.0
"""The time limit for a flush that the program did not ask for."""
_GRACE_S: Final = 2.0  # additional time for closing
_AFTER_QUEUES: Final = -10  # the feeder threads of queues are joined at -5

_log = logging.getLogger(__name__)

Finish = Callable[[], Coroutine[Any, Any, int]]
"""Closes the client on its loop within `MOST_S`, and returns the number of records lost."""


class Farewell:
    """Ends a client exactly once, without a reference to the blocking client itself."""

    def __init__(self, name: str, thread: LoopThread, finish: Finish) -> None:
        self._name = name
        self._thread = thread
        self._task: asyncio.Task[None] | None = None
        self._is_begun = False
        self.finish = finish
        atexit.register(self._at_exit)
        self._forget_child = _at_end_of_child(self._at_exit)

    @property
    def is_due(self) -> bool:
        """Whether the client runs in this process and has not begun to end."""
        return not self._is_begun and self._thread.is_own and self._thread.is_alive

    def cancel(self) -> None:
        """Unregister the exit handlers, because the client has been closed."""
        self._unregister()

    def begin(self) -> None:
        """Make the loop finish its work and stop. Further calls do nothing."""
        if self.is_due:
            self._is_begun = True
            with suppress(RuntimeError):  # the loop has just ended
                self._thread.call_soon(self._start)

    def _at_exit(self) -> None:
        if not self._thread.is_own:
            return
        if self.is_due:
            warnings.warn(f"unclosed {self._name}: use it in a with block", ResourceWarning, 2)
        self.begin()
        try:
            self._thread.join(MOST_S + _GRACE_S)
        except KeyboardInterrupt:
            _log.warning("%s was not flushed at exit: interrupted", self._name)

    # ---- on the loop ----

    def _start(self) -> None:
        self._task = self._thread.loop.create_task(self._end())

    async def _end(self) -> None:
        lost = 0
        try:
            lost = await self.finish()
        except Exception:
            _log.exception("%s could not be closed", self._name)
        finally:
            say_lost(lost, self._name)
            self._unregister()
            self._thread.end()

    def _unregister(self) -> None:
        atexit.unregister(self._at_exit)
        self._forget_child()


def _at_end_of_child(call: Callable[[], None]) -> Callable[[], object]:
    """Register a call at the end of a `multiprocessing` child, and return its cancel function."""
    # Do this only for programs that have loaded `multiprocessing`, because a client should not
    # import it.
    process = sys.modules.get("multiprocessing.process")
    if process is None or process.parent_process() is None:
        return lambda: None
    from multiprocessing.util import Finalize

    def end() -> None:
        # As at interpreter exit, first wait for threads that are still sending.
        for thread in threading.enumerate():
            if not thread.daemon and thread is not threading.current_thread():
                thread.join()
        call()

    return Finalize(None, end, exitpriority=_AFTER_QUEUES).cancel
