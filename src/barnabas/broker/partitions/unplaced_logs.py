"""Tracks logs that may have lost records, until their partitions have a leader.

After an unclean stop, a broker warns the controller about these logs (`may_have_lost` in its
registration). The warning ends when each of their partitions has a leader that was elected after
the warning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.types import TopicPartition


class UnplacedLogs:
    """The names of these logs. Usually, there are none."""

    __slots__ = ("_are_placed", "_names")

    def __init__(self) -> None:
        self._names: set[TopicPartition] = set()
        self._are_placed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._names)

    def on_found(self, names: Iterable[TopicPartition]) -> None:
        """Add the logs that were found at startup."""
        self._names.update(names)

    def on_placed(self, names: Iterable[TopicPartition]) -> None:
        """Remove partitions that have a leader or have been deleted."""
        # Roles may be assigned before startup has added the logs.
        if self._names:
            self._names.difference_update(names)
            if not self._names:
                self._are_placed.set()

    async def until_placed(self) -> None:
        """Wait until every log has been accounted for."""
        await self._are_placed.wait()
