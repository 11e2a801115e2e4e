"""The thread in which a blocking producer calls callbacks.

    loop thread: outcome --> queue --> callback thread: callback(delivery)

There a callback may do what the user's own threads may: send, wait for results, flush. On the loop
it would wait for itself. Callbacks are called one after the other, in the order of `put`. What one
raises beyond Exception, such as SystemExit, is passed to `on_raised`, and the next one is called.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

_MOST_WAITING = 10_000
"""The limit of due callbacks: a thread that adds more waits until some have been called."""


_AT_ONCE = 100
"""Taken under one lock, which would cost as much as a call."""


class CallbackThread:
    """Calls back in a thread that starts before the first callback, and ends with `close`."""

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
        """The caller is a callback."""
        return threading.current_thread() is self._thread

    def put(self, call: Callable[[], None]) -> None:
        """Queue `call` for this thread. Does not block; in any thread.

        After `close` there is no thread left: the caller's thread calls it.
        """
        with self._changed:
            is_late = self._is_closed
            if not is_late:
                self._calls.append(call)
                self._put_count += 1
                # With others due the thread is awake already.
                if len(self._calls) == 1:
                    self._changed.notify_all()
        if is_late:
            call()

    def start(self) -> None:
        """Start the thread, if it does not run; at the interpreter's end none could be started."""
        with self._changed:
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()

    def wait_for_room(self, timeout_s: float) -> bool:
        """Wait for room for one more; False if there is none. A callback never waits."""
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
        """Return once all callbacks put before have been called; at once in a callback."""
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
        """Have the thread end after the callbacks that are due, without a wait for it."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def close(self) -> None:
        """Flush, then end the thread; in a callback, it ends after those that are due."""
        self.end()
        if self._thread is not None and not self.is_current:
            self._thread.join()

    def _serve(self) -> None:
        while self._call_some():
            with self._changed:
                self._changed.notify_all()

    def _call_some(self) -> bool:
        """Wait for calls, and make some; False at the end.

        A frame of its own: one that waits must not hold the last call, and by that the producer.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._calls or self._is_closed)
            count = min(len(self._calls), _AT_ONCE)
            calls = [self._calls.popleft() for _ in range(count)]
        for call in calls:
            # Not under the lock: a callback may send, and so put the next one.
            try:
                call()
            except BaseException as error:  # a user's code: its caller is to get it
                self._on_raised(error)
            self._called_count += 1
        return bool(calls)
