"""Runs an event loop in a daemon thread, and lets other threads call into it.

User code that runs on the loop, such as a partitioner or an interceptor, may raise SystemExit. This
would end the loop while callers are waiting for it. Instead, the loop keeps running, and the
exception is raised in the next thread that calls into it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, TypeVar

from barnabas.client.errors import ClientClosed
from barnabas.net.loop import new_event_loop

T = TypeVar("T")


class LoopThread:
    """An event loop in its own thread. Both run from construction until `stop`."""

    def __init__(self, name: str) -> None:
        self.loop = new_event_loop()
        self._process_id = os.getpid()
        self._is_stopping = False
        self._kept: list[BaseException] = []  # errors in user code, for the next caller
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run `work` on the loop and wait for it.

        If the wait is interrupted, the work is cancelled.
        """
        return self.result(self.submit(work), timeout_s)

    def result(self, future: Future[T], timeout_s: float | None = None) -> T:
        """Wait for work that was submitted earlier, as `run` does."""
        try:
            # A thread cannot wait longer than this limit.
            limit_s = None if timeout_s is None else min(timeout_s, threading.TIMEOUT_MAX)
            result = future.result(limit_s)
        except CancelledError:
            raise ClientClosed("the client was closed before this call completed") from None
        except BaseException as error:
            # After an interrupt or a timeout, nobody waits for the work.
            self._drop_kept(error)
            future.cancel()
            raise
        self.raise_kept()
        return result

    def keep(self, error: BaseException) -> None:
        """Keep an error from user code, to be raised by the next call and only by that call."""
        self._kept.append(error)

    def raise_kept(self) -> None:
        """Raise the first kept error, if any. Errors kept after it have the same cause."""
        kept, self._kept = self._kept, []
        if kept:
            raise kept[0]

    def _drop_kept(self, error: BaseException) -> None:
        """Drop a kept error that the caller has already received from the task."""
        self._kept = [kept for kept in self._kept if kept is not error]

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run `work` on the loop. The caller waits for the returned future."""
        try:
            self.check()
        except BaseException:
            work.close()  # otherwise Python warns that it was never awaited
            raise
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def check(self) -> None:
        """Raise an error unless this thread may call the loop and wait, in the loop's process."""
        self.check_process()
        if not self.is_alive:
            raise ClientClosed("the client is closed")
        if threading.current_thread() is self._thread:
            raise ClientClosed(
                "called on the client's own event loop, which would wait for itself: call it in "
                "another thread"
            )

    def check_process(self) -> None:
        """Raise an error in a forked process, because the loop does not run there."""
        if not self.is_own:
            raise ClientClosed(
                f"this client and its connections belong to process {self._process_id}: create "
                "another client after the fork"
            )

    @property
    def is_own(self) -> bool:
        """Whether this process created the loop. False in a forked process."""
        return os.getpid() == self._process_id

    @property
    def is_alive(self) -> bool:
        """Whether the loop is running in this process."""
        return self._thread.is_alive()

    def call(self, work: Callable[[], T]) -> T:
        """Call `work` on the loop and wait for it."""

        async def call() -> T:
            return work()

        return self.run(call())

    def call_soon(self, callback: Callable[[], Any]) -> None:
        """Schedule a callback on the loop, without waiting."""
        self.loop.call_soon_threadsafe(callback)

    def stop(self) -> None:
        """Stop the loop and its thread, and cancel the tasks that are still running."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.end)
            self._thread.join()

    def end(self) -> None:
        """Stop the loop from inside, without waiting for the thread."""
        self._is_stopping = True
        self.loop.stop()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread to end. Returns False if it has not ended in time."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run_on(self) -> None:
        """Run the loop until it is stopped, whatever the callbacks raise."""
        while not self._is_stopping:
            try:
                self.loop.run_forever()
            except BaseException as error:  # SystemExit or KeyboardInterrupt from user code
                self.keep(error)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self._run_on()
            # Cancel the tasks in order of name, because the order of a set differs between runs.
            left = asyncio.all_tasks(self.loop)
            for task in sorted(left, key=lambda task: task.get_name()):
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            with suppress(RuntimeError):  # at interpreter exit no thread can be started
                self.loop.run_until_complete(self.loop.shutdown_default_executor())
        finally:
            self.loop.close()
