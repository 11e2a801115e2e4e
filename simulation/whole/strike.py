"""A process's death in the middle of a turn: at an operation on its machine's files.

`kill -9` and a power cut may happen between any two system calls, not only where a coroutine
awaits. Only operations that change the disk or make changes safe are counted: a death between two
reads leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NoReturn

from simulation.whole.lives import ProcessOver


class Strike:
    """Strikes one operation, which is then not done, or only partly done if it writes."""

    __slots__ = ("_befall", "_begins_with", "_left", "_random")

    def __init__(
        self,
        operations: int,
        random: Random,
        befall: Callable[[], object],
        begins_with: str = "",
    ) -> None:
        """Strikes at the last of this many changes and syncs of the disk.

        `befall` kills the process or cuts its power. `begins_with`: operations are counted from the
        time when something has a name with this ending.
        """
        assert operations > 0
        self._left = operations
        self._begins_with = begins_with
        self._random = random
        self._befall = befall

    def falls(self) -> bool:
        """Return whether the operation that begins now is struck."""
        if self._begins_with:
            return False
        self._left -= 1
        return self._left == 0

    def named(self, name: str) -> None:
        """Record that something now has this name."""
        if self._begins_with and name.endswith(self._begins_with):
            self._begins_with = ""

    def share(self, size: int) -> int:
        """Return how much of a write of this many bytes is done."""
        return self._random.choice((0, self._random.randint(0, size), size))

    def fall(self) -> NoReturn:
        self._befall()
        raise ProcessOver
