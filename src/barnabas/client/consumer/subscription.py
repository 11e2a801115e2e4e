"""Defines a consumer's subscription, and the listener for changes in its partitions. Pure."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence

from barnabas.client import arguments
from barnabas.types import TopicPartition

ListenerResult = Awaitable[None] | None
"""The result of a listener's method. The method may be defined with `def` or `async def`."""


class RebalanceListener:
    """Is notified of partitions gained and lost, during `poll`, `unsubscribe` and `close`.

    With an eager assignor, all partitions are revoked before each rebalance and assigned after it.
    If cooperative-sticky is the only assignor, only the partitions that change owners are revoked
    and assigned; all others continue to be read during the rebalance (KIP-429).

    Subclass it and override the methods that you need, each as `def` or `async def`.
    """

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> ListenerResult:
        """Called before other members get these partitions. This is the last chance to commit."""
        return None

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> ListenerResult:
        """Called with newly assigned partitions before they are read. The method may call `seek`.

        Called after every rebalance. The list is empty if this member gained no partitions.
        """
        return None

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> ListenerResult:
        """Called with partitions that other members have taken over. It is too late to commit.

        The default implementation calls `on_partitions_revoked`.
        """
        return self.on_partitions_revoked(partitions)


def checked_listener(listener: object) -> None:
    """Raise TypeError unless the listener is a RebalanceListener or None."""
    # A listener's class need not derive from RebalanceListener, so check the methods.
    names = ("on_partitions_revoked", "on_partitions_assigned", "on_partitions_lost")
    if listener is not None and not all(callable(getattr(listener, name, None)) for name in names):
        kind = type(listener).__name__
        raise TypeError(f"listener: must be a RebalanceListener, not {kind}")


class Subscription:
    """A subscription by topic names or by a pattern. `names` contains the current topics."""

    __slots__ = ("_wanted", "exclude_internal", "listener", "names", "pattern")

    def __init__(
        self,
        topics: Iterable[str] | re.Pattern[str],
        listener: RebalanceListener | None,
        *,
        exclude_internal: bool,
    ) -> None:
        """Raises TypeError for a single name, and ValueError if there are no names."""
        self.listener = listener or RebalanceListener()
        self.exclude_internal = exclude_internal
        self.pattern: re.Pattern[str] | None = None
        self.names: tuple[str, ...] = ()
        self._wanted: frozenset[str] = frozenset()  # the topics subscribed to by name
        if isinstance(topics, re.Pattern):
            if not isinstance(topics.pattern, str):
                raise TypeError("topics: must be a pattern of text, not of bytes")
            self.pattern = topics
            return
        if isinstance(topics, str):
            raise TypeError(
                f"topics: subscribe to a list, [{topics!r}], or to a pattern, re.compile(...)"
            )
        self.names = tuple(dict.fromkeys(arguments.topic_names(topics)))
        self._wanted = frozenset(self.names)
        if not self.names:
            raise ValueError("topics: nothing to subscribe to; unsubscribe() leaves the group")

    def covers(self, topic: str) -> bool:
        """Return whether the subscription includes this topic."""
        if self.pattern is None:
            return topic in self._wanted
        return self.pattern.fullmatch(topic) is not None

    def match(self, topics: Mapping[str, bool]) -> bool:
        """Match all topics (name -> is internal, TP-8). Returns whether `names` has changed."""
        if self.pattern is None:
            return False
        names = tuple(
            name
            for name in sorted(topics)
            if self.pattern.fullmatch(name) and not (topics[name] and self.exclude_internal)
        )
        changed = names != self.names
        self.names = names
        return changed
