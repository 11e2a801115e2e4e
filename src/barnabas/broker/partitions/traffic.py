"""Counts the records and bytes written to and read from topics, for Kafka's BrokerTopicMetrics.

The replicas of a topic share one object of plain numbers, so counting is an addition to an
attribute. The counts of topics without a remaining replica are summed, so that the totals never
decrease and there are no more names than hosted topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING

from barnabas.metrics import Family, Sample, counter

if TYPE_CHECKING:
    from barnabas.metrics import Registry

_FAMILIES = (
    ("MessagesIn", "messages_in", "Records appended as the leader"),
    ("BytesIn", "bytes_in", "Bytes of batches appended as the leader"),
    ("BytesOut", "bytes_out", "Bytes of batches sent to consumers"),
    ("ReplicationBytesIn", "replication_bytes_in", "Bytes of batches fetched from leaders"),
    ("ReplicationBytesOut", "replication_bytes_out", "Bytes of batches sent to followers"),
)
_NAMES = tuple(attribute for _, attribute, _ in _FAMILIES)


class TopicTraffic:
    """The counters of one topic."""

    __slots__ = (*_NAMES, "replicas")

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0
        self.replicas = 0
        """The number of the topic's replicas on this broker."""

    def add(self, other: TopicTraffic) -> None:
        """Add the counts of a topic that is no longer hosted."""
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffic:
    """The traffic counters of one broker's topics."""

    __slots__ = ("_count", "_gone", "_topics")

    def __init__(self, metrics: Registry, count: Callable[[], None]) -> None:
        """`count` makes all replicas add traffic that they have not counted yet."""
        self._count = count
        self._topics: dict[str, TopicTraffic] = {}
        self._gone = TopicTraffic()
        metrics.declare(self._families)

    def join(self, topic: str) -> TopicTraffic:
        """Add a replica, and return its topic's counters."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicTraffic()
        found.replicas += 1
        return found

    def leave(self, topic: str) -> None:
        """Remove one replica; forget a topic without replicas."""
        found = self._topics[topic]
        found.replicas -= 1
        if not found.replicas:
            del self._topics[topic]
            self._gone.add(found)

    def _families(self) -> Iterator[Family]:
        """Yield families with a value for each topic and, as in Kafka, a total without a label."""
        self._count()
        for name, attribute, sentence in _FAMILIES:
            count = attrgetter(attribute)
            topics = [(topic, count(each)) for topic, each in self._topics.items()]
            total = count(self._gone) + sum(value for _, value in topics)
            yield counter(
                f"kafka.server:type=BrokerTopicMetrics,name={name}PerSec",
                sentence,
                [
                    Sample(total),
                    *(Sample(value, (("topic", topic),)) for topic, value in topics),
                ],
            )
