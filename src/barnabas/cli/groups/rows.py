"""Builds the rows of `groups describe`: a group's lag in each partition, and the member that reads
it. Pure.

Kafka's tool shows a partition's lag only if an offset has been committed. In these rows, the lag of
a partition without a committed offset is counted from the start of the log to its end, because a
group that is stuck on its first record also lags (GC-4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.client.admin.group_admin import GroupDescription, MemberDescription
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.client.lag.readings import DEAD
from barnabas.types import TopicPartition

EMPTY: Final = "Empty"
STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", DEAD, EMPTY)

Ends = Mapping[TopicPartition, int]


class GroupRow(NamedTuple):
    """Represents a partition that a group reads, or a member without partitions."""

    partition: TopicPartition | None
    offset: int | None  # committed: the offset of the next record to read
    end_offset: int | None
    lag: int | None  # in offsets; None if unknown because there is no leader
    member: MemberDescription | None


class DescribedGroup(NamedTuple):
    group: GroupDescription
    committed: Mapping[TopicPartition, OffsetAndMetadata]
    rows: list[GroupRow]  # by topic and partition, idle members last

    @property
    def lag(self) -> int:
        """Return the number of offsets between the group's offsets and the log ends, over all
        partitions. As in Kafka, this includes the offsets of transaction markers and compacted
        records.
        """
        return sum(row.lag for row in self.rows if row.lag is not None and row.lag > 0)


def group_rows(
    group: GroupDescription,
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    partitions: list[TopicPartition],
    starts: Ends,
    ends: Ends,
) -> list[GroupRow]:
    """Return a row for each partition, then one for each member without partitions."""
    owners = {name: member for member in group.members for name in member.partitions}
    rows = []
    for name in partitions:
        at = committed.get(name)
        offset, end = None if at is None else at.offset, ends.get(name)
        begin = starts.get(name) if offset is None else offset
        # Without a commit, the group still has to read the whole log.
        lag = None if end is None or begin is None else end - begin
        rows.append(GroupRow(name, offset, end, lag, owners.get(name)))
    rows += [
        GroupRow(None, None, None, None, member)
        for member in sorted(group.members)
        if not member.partitions
    ]
    return rows
