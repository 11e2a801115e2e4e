"""Counts the records and bytes written to and read from topics (Kafka's BrokerTopicMetrics).

All replicas of a topic share one object that contains plain numbers, so counting means adding to an
attribute. When a topic's last replica is removed, its counts are added to a common sum. The totals
therefore never decrease, and there are never more names than there are hosted topics.
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
        """Add a topic's counts when this broker no longer hosts the topic."""
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Traffic:
    """The traffic counters of the topics on one broker."""

    __slots__ = ("_count", "_gone", "_topics")

    def __init__(self, metrics: Registry, count: Callable[[], None]) -> None:
        """`count` makes every replica add the traffic that it has not counted yet."""
        self._count = count
        self._topics: dict[str, TopicTraffic] = {}
        self._gone = TopicTraffic()
        metrics.declare(self._families)

    def join(self, topic: str) -> TopicTraffic:
        """Add a replica, and return the counters of its topic."""
        found = self._topics.get(topic)
        if found is None:
            found = self._topics[topic] = TopicTraffic()
        found.replicas += 1
        return found

    def leave(self, topic: str) -> None:
        """Remove a replica. If it was the topic's last replica, forget the topic."""
        found = self._topics[topic]
        found.replicas -= 1
        if not found.replicas:
            del self._topics[topic]
            self._gone.add(found)

    def _families(self) -> Iterator[Family]:
        """Yield metric families that contain a value for each topic and, as in Kafka, a total
        without a label.
        """
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
