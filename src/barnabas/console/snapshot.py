"""Defines snapshots of a cluster, as polled by the console. Pure."""

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
    """Leaders that did not answer are missing."""
    starts: Mapping[TopicPartition, int]
    """Looked up less often than the ends."""
    error: str = ""
    """Why a later poll failed; the other fields are from before it."""

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
    """The bytes of each replica, by broker."""
    is_denied: bool = False
    """The console's user may not Describe the cluster, which other looks need as well."""


class GroupLook(NamedTuple):
    """The groups, and each one's last known lag; many groups are polled in turns."""

    listings: Mapping[str, GroupListing]
    lags: Mapping[str, GroupLag]
    looked_at: Mapping[str, int]
    """When each of `lags` was looked at, in ms since 1970."""
    denied: int = 0
    """The number of listed groups that the user may not Describe."""
    error: str = ""


class TransactionLook(NamedTuple):
    """The transactions, and the details of those that are open."""

    listings: tuple[TransactionListing, ...]
    open: Mapping[str, TransactionDescription]
    at_ms: int
    error: str = ""


def disk_look(directories: Mapping[int, tuple[LogDirDescription, ...]]) -> DiskLook:
    """Return these directories, with the size of each replica that is not being moved there."""
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
