"""Remembers which request caused this broker to change a topic, until the controller reports it
(IN-1).

A change passes through the metadata store, where the handler of a request writes the change and the
controller reads it when its watch fires. The cause is therefore stored under a key that is unique
to the change and that both the handler and the controller can derive. If a change was written by
another broker or by a tool, its cause is unknown, and the controller does not guess.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

MOST_CAUSES: Final = 10_000

Key = bytes | tuple[str, int]


def growth_key(topic: str, partitions: int) -> Key:
    """Return the key for increasing a topic to this number of partitions."""
    return topic, partitions


def deletion_key(topic: str) -> Key:
    """Return the key for deleting a topic. The key for creating a topic is its new id."""
    return topic, 0


class TopicCauses:
    """The causes of this broker's changes to topics.

    If there are too many, the oldest are dropped.
    """

    __slots__ = ("_causes",)

    def __init__(self) -> None:
        self._causes: dict[Key, str] = {}

    def note(self, key: Key, cause: str) -> None:
        """Store the cause of a change that is about to be written. If it already has a cause, that
        cause is kept.
        """
        if not cause:
            return
        self._causes.setdefault(key, cause)
        if len(self._causes) > MOST_CAUSES:
            del self._causes[next(iter(self._causes))]

    def take(self, key: Key) -> str:
        """Return the cause of a change and forget it. Returns "" if the cause is unknown."""
        return self._causes.pop(key, "")

    @contextmanager
    def noting(self, keys: Iterable[Key], cause: str) -> Iterator[None]:
        """Store the cause of the changes that are written inside this context, and forget it if the
        write fails.
        """
        keys = tuple(keys)
        for key in keys:
            self.note(key, cause)
        try:
            yield
        except BaseException:
            for key in keys:
                self.take(key)
            raise
