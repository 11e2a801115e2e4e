"""States of partitions that could not be taken over for want of file descriptors.

Nothing is wrong with a disk then, so nothing goes offline: the controller is answered as if it were
done, and it is tried again each second, between other tasks, as the controller's requests are
carried out. Until then clients are refused: this broker does not lead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from barnabas.cluster.controller_requests import PartitionState
from barnabas.types import TopicPartition

_AGAIN_AFTER_S = 1.0


class DeferredStates:
    """The last state of each partition counts."""

    __slots__ = ("_is_closed", "_retry", "_states", "_task", "_timer")

    def __init__(self, retry: Callable[[TopicPartition], Awaitable[None]]) -> None:
        """`retry` applies a partition's state again, if it still has one, and may put it off."""
        self._retry = retry
        self._states: dict[TopicPartition, PartitionState] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._states)

    def get(self, name: TopicPartition) -> PartitionState | None:
        return self._states.get(name)

    def put_off(self, state: PartitionState) -> None:
        self._states[state.topic_partition] = state
        self._wait()

    def forget(self, names: Iterable[TopicPartition]) -> None:
        """They are stopped, or have a newer state."""
        for name in names:
            self._states.pop(name, None)

    async def close(self) -> None:
        """Nothing is tried any more."""
        self._is_closed = True
        self._states.clear()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _wait(self) -> None:
        if self._timer is None and self._task is None and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_AGAIN_AFTER_S, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._try_again())

    async def _try_again(self) -> None:
        try:
            for name in list(self._states):
                await self._retry(name)
        finally:
            self._task = None
            if self._states:
                self._wait()
