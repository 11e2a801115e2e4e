"""A process's death in the middle of a turn: at an operation on its machine's files.

`kill -9` and a power cut fall between any two system calls, not only where a coroutine awaits. Only
what changes the disk is counted, or makes it safe: between two reads nothing is left behind.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NoReturn

from simulation.whole.lives import ProcessOver


class Strike:
    """Falls on one operation: that is not done, or if it writes, done in part."""

    __slots__ = ("_befall", "_begins_with", "_left", "_random")

    def __init__(
        self,
        operations: int,
        random: Random,
        befall: Callable[[], object],
        begins_with: str = "",
    ) -> None:
        """Falls on the last of so many changes of the disk and syncs. `befall`: to kill the
        process, or to cut its power. `begins_with`: operations count from the moment at which
        something has a name that ends so."""
        assert operations > 0
        self._left = operations
        self._begins_with = begins_with
        self._random = random
        self._befall = befall

    def falls(self) -> bool:
        """Whether the operation that begins now is the one."""
        if self._begins_with:
            return False
        self._left -= 1
        return self._left == 0

    def named(self, name: str) -> None:
        """Something has this name now."""
        if self._begins_with and name.endswith(self._begins_with):
            self._begins_with = ""

    def share(self, size: int) -> int:
        """How much of a write of so many bytes is done."""
        return self._random.choice((0, self._random.randint(0, size), size))

    def fall(self) -> NoReturn:
        self._befall()
        raise ProcessOver
