"""A consumer's subscription, and the listener for its partitions. Pure."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence

from barnabas.client import arguments
from barnabas.types import TopicPartition

ListenerResult = Awaitable[None] | None
"""The result of a listener's method, which may be `def` or `async def`."""


class RebalanceListener:
    """Called inside of `poll`, `unsubscribe` and `close` with partitions that come and go.

    By an eager assignor all partitions go before each rebalance and come after it. By
    cooperative-sticky alone only those go that move, and those come that are new: the others stay
    assigned, and are read during the rebalance as well (KIP-429).

    Subclass it and override the methods that matter, each as `def` or as `async def`.
    """

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> ListenerResult:
        """These go to others next; processed records can still be committed."""
        return None

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> ListenerResult:
        """These were assigned, and nothing was read of them yet: the moment for `seek`.

        Called after every rebalance; the list is empty if this member was given nothing new.
        """
        return None

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> ListenerResult:
        """These went to others already; nothing can be committed. By default calls `revoked`."""
        return self.on_partitions_revoked(partitions)


def checked_listener(listener: object) -> None:
    """Raise TypeError unless it is a RebalanceListener or None."""
    # By its methods: a class of the user's own need not derive from ours.
    names = ("on_partitions_revoked", "on_partitions_assigned", "on_partitions_lost")
    if listener is not None and not all(callable(getattr(listener, name, None)) for name in names):
        kind = type(listener).__name__
        raise TypeError(f"listener: must be a RebalanceListener, not {kind}")


class Subscription:
    """Topics by name, or a pattern that must match a whole name; `names`: the topics now."""

    __slots__ = ("_wanted", "exclude_internal", "listener", "names", "pattern")

    def __init__(
        self,
        topics: Iterable[str] | re.Pattern[str],
        listener: RebalanceListener | None,
        *,
        exclude_internal: bool,
    ) -> None:
        """Raises TypeError for a single name, ValueError for none."""
        self.listener = listener or RebalanceListener()
        self.exclude_internal = exclude_internal
        self.pattern: re.Pattern[str] | None = None
        self.names: tuple[str, ...] = ()
        self._wanted: frozenset[str] = frozenset()  # by name
        if isinstance(topics, re.Pattern):
            if not isinstance(topics.pattern, str):
                raise TypeError("topics: a pattern of text, not of bytes")
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
        """Return whether it may name this topic."""
        if self.pattern is None:
            return topic in self._wanted
        return self.pattern.fullmatch(topic) is not None

    def match(self, topics: Mapping[str, bool]) -> bool:
        """Match all topics (name -> whether it is internal, TP-8); True if `names` changed."""
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
