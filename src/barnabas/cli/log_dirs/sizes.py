"""Computes the sizes of topics and of brokers' data from the log directories. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin.admin import LogDirDescription, TopicDescription

Directories = Mapping[int, Sequence["LogDirDescription"]]


def topic_sizes(directories: Directories, topics: Iterable[TopicDescription]) -> dict[str, int]:
    """Return the size of each topic in bytes. Each partition is counted once, with the size of its
    leader or, if it has none, of its largest replica. Topics without a known replica are omitted.
    """
    sizes = {
        (broker_id, name): replica.size_bytes
        for broker_id, own in directories.items()
        for directory in own
        for name, replica in directory.replicas.items()
        # Counting the copy created by a move would count a partition twice.
        if not replica.is_future
    }
    found: Counter[str] = Counter()
    for topic in topics:
        for each in topic.partitions:
            name = TopicPartition(topic.name, each.partition)
            known = [sizes[broker, name] for broker in each.replicas if (broker, name) in sizes]
            if known:
                # A follower may lag, so use the leader's size. Without a leader, the largest size
                # is the best guess.
                found[topic.name] += sizes.get((each.leader, name), max(known))
    return dict(found)


def broker_sizes(directories: Directories) -> dict[int, int]:
    """Return the bytes of all replicas that a broker stores."""
    return {
        broker_id: sum(
            replica.size_bytes for directory in own for replica in directory.replicas.values()
        )
        for broker_id, own in directories.items()
    }
