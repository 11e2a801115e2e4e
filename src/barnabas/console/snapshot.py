"""Defines the snapshots of a cluster that the console takes when polling. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from barnabas.client.admin.admin import ClusterDescription, TopicDescription
from barnabas.client.admin.group_admin import GroupListing
from barnabas.client.admin.replica_admin import LogDirDescription
from barnabas.client.admin.transaction_admin import TransactionDescription, TransactionListing
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.view import PartitionView
from barnabas.types import TopicPartition


class ClusterLook(NamedTuple):
    """The brokers, topics and log ends at the last successful poll."""

    at_ms: int
    cluster: ClusterDescription
    topics: Mapping[str, TopicDescription]
    ends: Mapping[TopicPartition, int]
    """The end offsets. Partitions whose leaders did not answer are missing."""
    starts: Mapping[TopicPartition, int]
    """The start offsets, which are looked up less often than the end offsets."""
    error: str = ""
    """Why a later poll failed, in which case the other fields are from before that poll."""

    @property
    def live(self) -> set[int]:
        """The ids of the live brokers."""
        return {broker.broker_id for broker in self.cluster.brokers}

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionView]]:
        """Yield every partition."""
        for topic in self.topics.values():
            for partition in topic.partitions:
                yield TopicPartition(topic.name, partition.partition), partition


class DiskLook(NamedTuple):
    """The brokers' log directories, looked up less often than the topics."""

    directories: Mapping[int, tuple[LogDirDescription, ...]]
    sizes: Mapping[TopicPartition, Mapping[int, int]]
    """The size of each replica in bytes, by broker."""
    is_denied: bool = False
    """Whether the console's user lacks the Describe permission on the cluster, which other polls
    need as well.
    """


class GroupLook(NamedTuple):
    """The groups and their last known lags. If there are many groups, they are polled in turns."""

    listings: Mapping[str, GroupListing]
    lags: Mapping[str, GroupLag]
    looked_at: Mapping[str, int]
    """The time when each of the `lags` was determined, in ms since 1970."""
    denied: int = 0
    """The number of listed groups that the user is not allowed to Describe."""
    error: str = ""


class TransactionLook(NamedTuple):
    """The transactions, and the details of those that are open."""

    listings: tuple[TransactionListing, ...]
    open: Mapping[str, TransactionDescription]
    at_ms: int
    error: str = ""


def disk_look(directories: Mapping[int, tuple[LogDirDescription, ...]]) -> DiskLook:
    """Return these directories with the size of each replica, except replicas that are still being
    moved to the directory.
    """
    sizes: dict[TopicPartition, dict[int, int]] = {}
    for broker_id, own in directories.items():
        for directory in own:
            for name, replica in directory.replicas.items():
                if not replica.is_future:
                    sizes.setdefault(name, {})[broker_id] = replica.size_bytes
    return DiskLook(directories, sizes)


NO_DISKS = DiskLook({}, {})
NO_GROUPS = GroupLook({}, {}, {})
NO_TRANSACTIONS = TransactionLook((), {}, 0)
