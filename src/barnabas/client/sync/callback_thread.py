"""Runs the thread in which a blocking producer calls its callbacks.

    loop thread: outcome --> queue --> callback thread: callback(delivery)

In this thread, a callback may do anything that a user's thread may do, such as send, wait for
results or flush. On the loop, a callback that waits would be waiting for itself. Callbacks are
called one after another, in the order of `put`. If a callback raises anything other than an
Exception, such as SystemExit, it is passed to `on_raised`, and the next callback is called.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

_MOST_WAITING = 10_000
"""The maximum number of callbacks that are due but have not been called.

A thread that adds more has to wait until some of them have been called.
"""


_AT_ONCE = 100
"""The number of callbacks taken at once; locking for each would cost as much as a call."""


class CallbackThread:
    """Calls callbacks in a thread, which starts with the first callback and ends with `close`."""

    def __init__(self, name: str, on_raised: Callable[[BaseException], None]) -> None:
        self._name = name
        self._on_raised = on_raised
        self._calls: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._put_count = 0
        self._called_count = 0
        self._is_closed = False

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in a callback."""
        return threading.current_thread() is self._thread

    def put(self, call: Callable[[], None]) -> None:
        """Queue `call` for this thread without blocking. May be called in any thread.

        After `close`, the thread no longer exists, so `call` runs in the caller's thread.
        """
        with self._changed:
            is_late = self._is_closed
            if not is_late:
                self._calls.append(call)
                self._put_count += 1
                # If other callbacks are due, the thread is awake.
                if len(self._calls) == 1:
                    self._changed.notify_all()
        if is_late:
            call()

    def start(self) -> None:
        """Start the thread if it is not running. At interpreter exit, no thread can be started."""
        with self._changed:
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait for room for a call, and return whether there is any. Callbacks never wait."""
        # A callback that waited for room would wait for itself.
        if self._thread is None:
            self.start()
        if self._has_room() or self.is_current:
            return True
        with self._changed:
            return self._changed.wait_for(self._has_room, timeout_s)

    def _has_room(self) -> bool:
        return self._put_count - self._called_count < _MOST_WAITING

    def flush(self) -> None:
        """Wait until all callbacks queued so far have been called. In a callback, do nothing."""
        if self.is_current:
            return
        with self._changed:
            put_count = self._put_count
            self._changed.wait_for(lambda: self._called_count >= put_count)

    async def all_called(self) -> None:
        """Wait for all callbacks, as `flush` does, without blocking the loop."""
        if self._thread is None or not self._thread.is_alive():
            return
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def settle() -> None:
            if not done.done():
                done.set_result(None)

        def call() -> None:
            loop.call_soon_threadsafe(settle)

        self.put(call)
        await done

    def end(self) -> None:
        """Let the thread end after the callbacks that are due, without waiting for it."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def close(self) -> None:
        """Flush, then end the thread. In a callback, the thread ends after the due callbacks."""
        self.end()
        if self._thread is not None and not self.is_current:
            self._thread.join()

    def _serve(self) -> None:
        while self._call_some():
            with self._changed:
                self._changed.notify_all()

    def _call_some(self) -> bool:
        """Wait for calls, and make some of them. Returns False at the end.

        This is a separate function, because a waiting thread must not keep a reference to the last
        call, and through it to the producer.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._calls or self._is_closed)
            count = min(len(self._calls), _AT_ONCE)
            calls = [self._calls.popleft() for _ in range(count)]
        for call in calls:
            # Do not hold the lock, because a callback may send, and thus queue another callback.
            try:
                call()
            except BaseException as error:  # raised by the user's code, for its caller
                self._on_raised(error)
            self._called_count += 1
        return bool(calls)
