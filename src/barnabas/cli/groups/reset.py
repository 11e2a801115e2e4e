"""Plans an offset reset from the state of the cluster, and carries it out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.cli.connection import client_options
from barnabas.cli.groups.lookup import partition_numbers
from barnabas.cli.groups.names import GroupNames
from barnabas.cli.groups.reset_plan import (
    BadReset,
    Goal,
    Log,
    Move,
    Selection,
    Target,
    plan_move,
    select_partitions,
)
from barnabas.cli.groups.reset_text import Offsets, read_plan
from barnabas.cli.groups.rows import EMPTY
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.group_admin import GroupDescription
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.client.lag.readings import DEAD, offsets_at
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.counted import counted
from barnabas.errors import UnknownMemberId
from barnabas.types import TopicPartition

Committed = dict[TopicPartition, OffsetAndMetadata]
Targets = dict[TopicPartition, Target]


class ResetRequest(NamedTuple):
    """Describes the reset requested on the command line."""

    names: GroupNames
    target: Target | None  # None if the file has a target for each partition
    selections: list[Selection]  # if empty, all partitions with a committed offset
    file_text: str | None


async def reset(servers: str, request: ResetRequest, execute: bool) -> list[Move]:
    """Return the plans for all groups. With `execute`, carry them out once all plans are complete.
    Raises BadReset.
    """
    async with Admin(servers, **client_options()) as admin:
        group_ids = await request.names.of(admin)
        files = None if request.file_text is None else read_plan(request.file_text, group_ids)
        topics = await partition_numbers(admin)
        moves = []
        # Check every group before changing any.
        for group_id, group in (await admin.describe_groups(group_ids)).items():
            offsets = None if files is None else files[group_id]
            moves += await plan_group(admin, group, _chooser(request, offsets, topics))
        if execute:
            for group_id in dict.fromkeys(move.group_id for move in moves):
                own = [move for move in moves if move.group_id == group_id]
                await reset_group(admin, group_id, own)
        return moves


def _chooser(
    request: ResetRequest, offsets: Offsets | None, topics: dict[str, list[int]]
) -> Callable[[Committed], Targets]:
    """Return a function that chooses a group's targets. `offsets` are the offsets in the file, if
    any.
    """

    def choose(committed: Committed) -> Targets:
        if offsets is not None:
            return _targets_of_file(offsets, topics)
        assert request.target is not None
        return targets_of(request.target, request.selections, committed, topics)

    return choose


async def plan_group(
    admin: Admin, group: GroupDescription, choose: Callable[[Committed], Targets]
) -> list[Move]:
    """Return a group's moves. `choose` is called with the group's committed offsets. Raises
    BadReset.
    """
    _refuse_members(group)
    committed = await admin.list_group_offsets(group.group_id)
    return await _plan(admin, group.group_id, committed, choose(committed))


async def reset_group(admin: Admin, group_id: str, moves: Iterable[Move]) -> None:
    """Apply either all moves of a group or none. Raises BadReset."""
    offsets = {move.partition: move.after for move in moves}
    try:
        await admin.alter_group_offsets(group_id, offsets)
    # While a group has members, a commit without a member id fails with this error.
    except UnknownMemberId:
        raise BadReset(
            f"group {group_id!r} has gained members in the meantime: offsets can only be reset "
            "while it has none"
        ) from None


def targets_of(
    target: Target,
    selections: list[Selection],
    committed: Committed,
    topics: dict[str, list[int]],
) -> Targets:
    """Return the target for each selected partition. If none is selected, these are all of the
    group's partitions.
    """
    if selections:
        return dict.fromkeys(select_partitions(selections, topics), target)
    # --all-topics means the group's topics. Offsets may still exist for a topic that was deleted.
    there = [name for name in committed if name.partition in topics.get(name.topic, ())]
    return dict.fromkeys(there, target)


def _targets_of_file(offsets: Offsets, topics: dict[str, list[int]]) -> Targets:
    named = [Selection(name.topic, (name.partition,)) for name in offsets]
    return {name: Target(Goal.OFFSET, offsets[name]) for name in select_partitions(named, topics)}


async def _plan(admin: Admin, group_id: str, committed: Committed, targets: Targets) -> list[Move]:
    """Return the group's moves in each of its partitions. Raises BadReset."""
    starts = await offsets_at(admin, targets, EARLIEST)
    ends = await offsets_at(admin, targets, LATEST)
    times = {name: to.number for name, to in targets.items() if to.goal is Goal.TIME}
    at_times = {name: at.offset for name, at in (await admin.list_offsets(times)).items()}
    moves = []
    for name, target in targets.items():
        before, at_time = committed.get(name), at_times.get(name, -1)
        log = Log(
            starts[name],
            ends[name],
            None if before is None else before.offset,
            None if at_time < 0 else at_time,
        )
        moves.append(plan_move(group_id, name, target, log))
    return moves


def _refuse_members(group: GroupDescription) -> None:
    if group.state not in (EMPTY, DEAD):
        members = counted(len(group.members), "member")
        raise BadReset(
            f"group {group.group_id!r} is {group.state}, with {members}: offsets can only be reset "
            "while it has none; stop them first"
        )
