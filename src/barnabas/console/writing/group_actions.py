"""Resets the offsets of a consumer group. The plans are the same as those of `barnabas groups
reset-offsets`.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.cli.groups.instants import BadInstant, instant_text, moment_ms
from barnabas.cli.groups.lookup import partition_numbers
from barnabas.cli.groups.reset import Targets, plan_group, reset_group, targets_of
from barnabas.cli.groups.reset_plan import BadReset, Goal, Move, Selection, Target, selection
from barnabas.client.arguments import INT64_MAX
from barnabas.client.lag.readings import DEAD
from barnabas.clock import SystemClock
from barnabas.console.problem import WebProblem
from barnabas.console.writing.form import Form
from barnabas.console.writing.plan import Access, Action, Change, Plan
from barnabas.types import TopicPartition

_GOALS = {
    "earliest": Goal.EARLIEST,
    "latest": Goal.LATEST,
    "time": Goal.TIME,
    "shift": Goal.SHIFT,
    "offset": Goal.OFFSET,
}


class ResetOffsets(Action):
    """Moves the committed offsets of a group that has no members."""

    name = "reset-offsets"

    def __init__(
        self,
        group_id: str,
        target: Target,
        selections: list[Selection],
        offsets: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Without `selections`, all partitions with a committed offset are reset. `offsets` are the
        offsets of a plan. If they are given, only these are committed.
        """
        self._group_id = group_id
        self._target = target
        self._selections = selections
        self._offsets = offsets

    @classmethod
    def parse(cls, form: Form) -> ResetOffsets:
        """Return the action that a form describes."""
        group_id = form.text("group", most=1_000)
        goal = form.choice("to", _GOALS)
        target = Target(_GOALS[goal])
        if goal == "time":
            target = _time(form.text("time"))
        elif goal in ("shift", "offset"):
            least = 0 if goal == "offset" else -INT64_MAX
            target = Target(_GOALS[goal], form.whole(goal, least=least, most=INT64_MAX))
        try:
            selections = [selection(text) for text in form.texts("topics")]
        except BadReset as error:
            raise WebProblem(400, f"topics: {error}") from error
        return cls(group_id, target, selections)

    @property
    def permission(self) -> str:
        """Name the permissions that the action requires."""
        return f"Read on the group {self._group_id!r} and on its topics"

    async def plan(self, access: Access) -> Plan:
        """Return the group's offset in each partition, before and after."""
        admin = access.admin
        group = (await admin.describe_groups([self._group_id]))[self._group_id]
        if group.state == DEAD:
            raise WebProblem(404, f"there is no group {self._group_id!r}")
        topics = await partition_numbers(admin)
        try:
            moves = await plan_group(
                admin,
                group,
                lambda committed: (
                    targets_of(self._target, self._selections, committed, topics)
                    if self._offsets is None
                    else _pinned(self._offsets)
                ),
            )
        except BadReset as error:
            raise WebProblem(409, str(error)) from error
        changes = [
            Change(
                str(move.partition),
                "no offset" if move.before is None else str(move.before),
                str(move.after),
            )
            for move in moves
            if move.before != move.after
        ]
        sentences = [] if changes else ["All offsets are already there."]
        if self._target.goal is Goal.TIME:
            sentences.append(
                f"Each offset is that of the first record at or after "
                f"{instant_text(self._target.number)}."
            )
        remarks = [move.remark for move in moves if move.remark is not None]
        return Plan(
            f"reset offsets of group {self._group_id}",
            tuple(changes),
            tuple(sentences),
            tuple(remarks[:20]),
        )

    def as_planned(self, plan: Plan) -> ResetOffsets:
        """Return the reset to the offsets in the plan, even if the logs have grown since."""
        offsets = {_partition(change): int(change.after or 0) for change in plan.changes}
        return ResetOffsets(self._group_id, self._target, self._selections, offsets)

    async def apply(self, access: Access, plan: Plan) -> list[str]:
        """Commit the offsets, either all of them or none."""
        moves = [
            Move(self._group_id, _partition(change), None, int(change.after or 0))
            for change in plan.changes
        ]
        try:
            await reset_group(access.admin, self._group_id, moves)
        except BadReset as error:
            raise WebProblem(409, str(error)) from error
        return [f"The offsets of group {self._group_id} were reset."]


def _time(text: str) -> Target:
    try:
        return Target(Goal.TIME, moment_ms(text.strip(), SystemClock().wall_ms()))
    except BadInstant as error:
        raise WebProblem(400, f"time: {error}") from error


def _pinned(offsets: Mapping[TopicPartition, int]) -> Targets:
    return {name: Target(Goal.OFFSET, offset) for name, offset in offsets.items()}


def _partition(change: Change) -> TopicPartition:
    topic, _, number = change.what.rpartition("-")
    return TopicPartition(topic, int(number))
