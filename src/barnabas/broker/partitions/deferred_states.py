"""States of partitions that could not be taken over for want of file descriptors.

Nothing is wrong with a disk then, so nothing goes offline: the controller is answered as if it were
done, and it is tried again each second. Until then clients are refused: this broker does not lead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from barnabas.cluster.controller_requests import PartitionState
from barnabas.types import TopicPartition

_AGAIN_AFTER_S = 1.0


class DeferredStates:
    """The last state of each partition counts."""

    __slots__ = ("_apply", "_states", "_timer")

    def __init__(self, apply: Callable[[PartitionState], object]) -> None:
        """`apply` is given each state again, and may put it off again."""
        self._apply = apply
        self._states: dict[TopicPartition, PartitionState] = {}
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._states)

    def put_off(self, state: PartitionState) -> None:
        self._states[state.topic_partition] = state
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_AGAIN_AFTER_S, self._try_again)

    def forget(self, names: Iterable[TopicPartition]) -> None:
        """They are stopped, or have a newer state."""
        for name in names:
            self._states.pop(name, None)

    def close(self) -> None:
        """Nothing is tried any more."""
        self._states.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _try_again(self) -> None:
        self._timer = None
        for state in list(self._states.values()):
            self._apply(state)
