"""Waiting for a partition that a topic does not have yet: it may have grown a moment ago."""

from __future__ import annotations

from typing import Final

from barnabas.client.errors import Unreachable
from barnabas.client.metadata import Metadata
from barnabas.client.view import TopicView, unknown_partition
from barnabas.clock import Clock

_PATIENCE_MS: Final = 5_000
"""How long brokers may answer that there is no such partition: growth takes far less to reach all
of them, and `max.block.ms` is too long for a wrong number."""
_REMEMBERED_MS: Final = 1_000  # so many records for one wrong number wait once
_MOST_REMEMBERED: Final = 1_000


class Growth:
    """The partitions that topics of one producer turned out not to have."""

    def __init__(self, metadata: Metadata, clock: Clock) -> None:
        self._metadata = metadata
        self._clock = clock
        self._absent: dict[tuple[str, int], int] = {}  # -> when that was last seen

    async def having(self, topic: TopicView, partition: int) -> TopicView:
        """The topic, once it has the partition. Raises UnknownPartition; the caller bounds it, for
        as long as no broker answers."""
        began_ms = self._clock.monotonic_ms()
        name = topic.name, partition
        is_answered = began_ms - self._absent.get(name, -_REMEMBERED_MS) < _REMEMBERED_MS
        while partition not in topic.partitions:
            if is_answered:
                raise unknown_partition(topic, partition)
            try:
                view = await self._metadata.refresh()
            except Unreachable:  # it is repeated with backoff
                continue
            topic = view.topics.get(topic.name, topic)
            is_answered = self._clock.monotonic_ms() - began_ms >= _PATIENCE_MS
            if is_answered:
                if len(self._absent) >= _MOST_REMEMBERED:
                    self._absent.clear()
                self._absent[name] = self._clock.monotonic_ms()
        return topic
