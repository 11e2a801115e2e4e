"""Logs that were found at a start which may have lost their ends, until a broker leads them.

A broker that did not stop cleanly warns the controller of it (`may_have_lost` in its registration).
The warning ends when each of these partitions has a leader that was elected in this knowledge.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.types import TopicPartition


class UnplacedLogs:
    """Holds the names of these logs; it is empty unless the start found any."""

    __slots__ = ("_are_placed", "_names")

    def __init__(self) -> None:
        self._names: set[TopicPartition] = set()
        self._are_placed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._names)

    def on_found(self, names: Iterable[TopicPartition]) -> None:
        """Add the logs that the start has found."""
        self._names.update(names)

    def on_placed(self, names: Iterable[TopicPartition]) -> None:
        """Forget partitions that have a leader now, or are deleted."""
        # Roles may be taken before the start has added what it found: then nothing has ended yet.
        if self._names:
            self._names.difference_update(names)
            if not self._names:
                self._are_placed.set()

    async def until_placed(self) -> None:
        """Return when the last of those that were found is placed."""
        await self._are_placed.wait()
