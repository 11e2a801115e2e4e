"""Translates the committed offsets of groups, and commits them in the target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.cli.copy.clusters import Sides
from barnabas.cli.copy.offset_map import OffsetMap
from barnabas.cli.copy.plan import is_wanted
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.counted import counted
from barnabas.types import TopicPartition

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Maps = Mapping[TopicPartition, OffsetMap]


class GroupPlan(NamedTuple):
    """The offsets to commit for a group, and why others are not committed."""

    group_id: str
    offsets: dict[TopicPartition, OffsetAndMetadata]
    equal: int = 0  # the offsets that the target has already
    notes: tuple[str, ...] = ()


def plan_for_group(group_id: str, committed: Offsets, present: Offsets, maps: Maps) -> GroupPlan:
    """Translate the offsets of a group, given those that it has in the target. Pure.

    An offset is never set back, because the group may have continued in the target.
    """
    offsets: dict[TopicPartition, OffsetAndMetadata] = {}
    notes: list[str] = []
    equal = 0
    for name, each in committed.items():
        copied = maps.get(name)
        if copied is None:
            continue
        if each.offset > copied.position:
            notes.append(f"{name} is copied up to {copied.position}, but was read to {each.offset}")
            continue
        wanted = each._replace(offset=copied.to_target(each.offset))
        known = present.get(name)
        if known is None or known.offset < wanted.offset:
            offsets[name] = _without_epoch(wanted)
        elif known.offset > wanted.offset:
            notes.append(f"{name} stays at {known.offset}, after {wanted.offset}")
        else:
            equal += 1
    return GroupPlan(group_id, offsets, equal, tuple(notes))


def _without_epoch(wanted: OffsetAndMetadata) -> OffsetAndMetadata:
    """The leader epochs of the clusters have nothing to do with each other."""
    return OffsetAndMetadata(wanted.offset, metadata=wanted.metadata)


async def group_plans(sides: Sides, patterns: Sequence[str], maps: Maps) -> list[GroupPlan]:
    """Return the plan for each group of the source that has offsets in copied partitions."""
    plans = []
    for listing in await sides.source.admin.list_groups():
        if not is_wanted(listing.group_id, patterns):
            continue
        committed = await sides.source.admin.list_group_offsets(listing.group_id)
        present = await sides.target.admin.list_group_offsets(listing.group_id)
        plan = plan_for_group(listing.group_id, committed, present, maps)
        if plan.offsets or plan.notes or plan.equal:
            plans.append(plan)
    return sorted(plans)


async def commit_groups(sides: Sides, plans: Sequence[GroupPlan]) -> list[str]:
    """Commit the offsets of groups without members, and return a line about each group."""
    described = await sides.target.admin.describe_groups([plan.group_id for plan in plans])
    lines = []
    for plan in plans:
        if members := described[plan.group_id].members:
            present = counted(len(members), "member")
            lines.append(f"{plan.group_id}: not committed, it has {present} in the target")
            continue
        if plan.offsets:
            await sides.target.admin.alter_group_offsets(plan.group_id, plan.offsets)
        done = f"{counted(len(plan.offsets), 'offset')} committed, {plan.equal} already there"
        lines.append("; ".join((f"{plan.group_id}: {done}", *plan.notes)))
    return lines
