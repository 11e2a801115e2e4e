"""Runs callbacks of the loop, mainly rebalance listeners, in the thread that waits for the loop.

    user's thread: poll() -> waits ---- listener ---- waits -> records
    loop thread:            work -> call, await it ^ -> work

A listener may therefore use its consumer, as in Kafka's client. In the thread of the loop, it would
wait for itself forever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from queue import SimpleQueue
from typing import Any, TypeVar

from barnabas.client.consumer.subscription import ListenerResult, RebalanceListener
from barnabas.client.loop_thread import LoopThread
from barnabas.types import TopicPartition

T = TypeVar("T")

_Calls = SimpleQueue[Callable[[], None] | None]


class UserThread:
    """A thread that runs callbacks while it waits for work on the loop."""

    def __init__(self, thread: LoopThread) -> None:
        self._thread = thread
        self._calls: _Calls = SimpleQueue()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` on the loop, as `LoopThread.run` does, and run callbacks while waiting."""
        # A listener may call the consumer, which waits in this method again. Each wait has its own
        # queue; when the inner wait ends, calls go to the outer one again.
        calls: _Calls = SimpleQueue()
        outer, self._calls = self._calls, calls
        try:
            return self._run_with_calls(work, calls)
        finally:
            self._calls = outer

    def _run_with_calls(self, work: Coroutine[Any, Any, T], calls: _Calls) -> T:
        future = self._thread.submit(work)
        future.add_done_callback(lambda done: calls.put(None))
        try:
            while (call := calls.get()) is not None:  # None means that the work is done
                call()
        except BaseException:  # raised by a listener, such as SystemExit, which also ends the work
            future.cancel()
            raise
        return self._thread.result(future)

    async def call(self, function: Callable[[], Any]) -> None:
        """Call `function` in the user's thread, from the loop. Raises any error that it raises."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def settle(error: Exception | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        def call() -> None:
            error: Exception | None = None
            try:
                function()
            except Exception as failure:  # raised by the user's own call
                error = failure
            loop.call_soon_threadsafe(settle, error)

        self._calls.put(call)
        await done


class ListenerThere(RebalanceListener):
    """Wraps a listener so that its methods are called in the user's thread."""

    def __init__(self, listener: RebalanceListener, thread: UserThread) -> None:
        self._listener = listener
        self._thread = thread

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> ListenerResult:
        return self._thread.call(lambda: self._listener.on_partitions_revoked(partitions))

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> ListenerResult:
        return self._thread.call(lambda: self._listener.on_partitions_assigned(partitions))

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> ListenerResult:
        return self._thread.call(lambda: self._listener.on_partitions_lost(partitions))
