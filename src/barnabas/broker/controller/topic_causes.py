"""Remembers which request made this broker change a topic, until the controller reports it (IN-1).

A change travels through the metadata store: the handler of a request writes it, and the controller
reads it when its watch fires. A cause is therefore kept under a key that both can derive and that
is unique to the change. Changes written by another broker or a tool have no known cause, and the
controller does not guess one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

MOST_CAUSES: Final = 10_000

Key = bytes | tuple[str, int]


def growth_key(topic: str, partitions: int) -> Key:
    """Return the key of a topic's growth to this number of partitions."""
    return topic, partitions


def deletion_key(topic: str) -> Key:
    """Return the key of a topic's deletion. The key of a creation is the new topic's id."""
    return topic, 0


class TopicCauses:
    """The causes of this broker's changes to topics; excess ones are dropped, oldest first."""

    __slots__ = ("_causes",)

    def __init__(self) -> None:
        self._causes: dict[Key, str] = {}

    def note(self, key: Key, cause: str) -> None:
        """Store the cause of a change that is about to be written; any later cause is ignored."""
        if not cause:
            return
        self._causes.setdefault(key, cause)
        if len(self._causes) > MOST_CAUSES:
            del self._causes[next(iter(self._causes))]

    def take(self, key: Key) -> str:
        """Return the cause of a change and forget it; return "" if it is unknown."""
        return self._causes.pop(key, "")

    @contextmanager
    def noting(self, keys: Iterable[Key], cause: str) -> Iterator[None]:
        """Note the cause of changes while they are written; forget it if the write fails."""
        keys = tuple(keys)
        for key in keys:
            self.note(key, cause)
        try:
            yield
        except BaseException:
            for key in keys:
                self.take(key)
            raise
