"""Looks up the lag of groups: their committed offsets, and the ends of their partitions."""

from __future__ import annotations

from barnabas.cli.groups.rows import DescribedGroup, group_rows
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_admin import GroupDescription
from barnabas.client.lag.readings import offsets_at, readings
from barnabas.client.offsets import EARLIEST, LATEST


async def look_up(admin: Admin, groups: list[GroupDescription]) -> list[DescribedGroup]:
    """Return each group with its rows. A partition without a leader has no end, and therefore no
    lag. Each end is looked up once, however many groups read the partition.
    """
    committed, read, led = await readings(admin, groups)
    uncommitted = {
        name for group_id, own in read.items() for name in own if name not in committed[group_id]
    }
    ends = await offsets_at(admin, led, LATEST)
    # The log start matters only if no offset is committed.
    starts = await offsets_at(admin, led & uncommitted, EARLIEST)
    described = []
    for group in groups:
        own = committed[group.group_id]
        rows = group_rows(group, own, read[group.group_id], starts, ends)
        described.append(DescribedGroup(group, own, rows))
    return described


async def partition_numbers(admin: Admin) -> dict[str, list[int]]:
    """Return the partition numbers of every topic."""
    return {
        topic.name: [each.partition for each in topic.partitions]
        for topic in await admin.describe_topics()
    }
