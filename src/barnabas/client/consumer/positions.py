"""Finds the positions that a consumer begins at: its group's, or those of a rule (CO-5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from barnabas.client.consumer.assignment import AssignedPartition
from barnabas.client.errors import NoOffsetForPartition
from barnabas.client.offsets import EARLIEST, LATEST, OffsetFinder
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.commits import Commits

COMMITTED: Final = "committed"  # start at the group's offset, else by auto.offset.reset


class Positions:
    def __init__(self, offsets: OffsetFinder, auto_offset_reset: str, timeout_ms: int) -> None:
        self._offsets = offsets
        self._auto_offset_reset = auto_offset_reset
        self._timeout_ms = timeout_ms
        self.commits: Commits | None = None  # of a consumer in a group

    async def find(self, states: Sequence[AssignedPartition]) -> None:
        """Set the positions: to the group's offset, or by each partition's rule."""
        await self._go_to_committed([state for state in states if state.reset == COMMITTED])
        states = [state for state in states if state.reset is not None]
        timestamps: dict[TopicPartition, int] = {}
        for state in states:
            if state.reset == "none":
                raise NoOffsetForPartition(
                    f"no position for {state.topic_partition}, and auto.offset.reset is none: "
                    "seek to an offset, or set it to earliest or latest"
                )
            timestamps[state.topic_partition] = EARLIEST if state.reset == "earliest" else LATEST
        generations = [state.generation for state in states]
        found = await self._offsets.find(timestamps, self._timeout_ms)
        for state, generation in zip(states, generations, strict=True):
            if state.generation == generation:
                at = found[state.topic_partition]
                state.seek(at.offset, at.leader_epoch)

    async def _go_to_committed(self, states: Sequence[AssignedPartition]) -> None:
        if not states or self.commits is None:
            return
        found = await self.commits.committed(state.topic_partition for state in states)
        self.commits.start_at(found)
        for state in states:
            if state.reset != COMMITTED:
                continue  # the user called seek meanwhile
            if state.topic_partition in found:
                at = found[state.topic_partition]
                state.seek(at.offset, at.leader_epoch)
            else:
                state.seek_by(self._auto_offset_reset)
