"""Defines faults that can be removed."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self


class Temporary:
    """A fault that lasts until `remove` or the end of the `with` block."""

    def __init__(self, remove: Callable[[], None]) -> None:
        self._remove = remove

    def remove(self) -> None:
        """End the fault. Do nothing if it has already ended."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()
