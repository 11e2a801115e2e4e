"""Checks groups' committed offsets: none is lost, and a replaced member commits nothing.

One member of each generation commits, and each commit has a larger offset than all before it. A
generation therefore finds at least the largest offset that was acknowledged in an earlier one. A
smaller offset means that this offset was lost, or that an earlier member has overwritten it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from simulation.cluster import Cluster


class GroupChecks:
    """All groups of one run."""

    __slots__ = ("_acknowledged", "_cluster", "_last")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._last: dict[str, int] = {}
        self._acknowledged: dict[str, dict[int, int]] = {}  # the largest offset by generation

    def next_offset(self, group_id: str) -> int:
        """Return an offset larger than all that the group has committed or tried to commit."""
        offset = self._last[group_id] = self._last.get(group_id, 0) + 1
        return offset

    def acknowledged(self, group_id: str, generation: int, offset: int) -> None:
        """Record that a commit of this generation was acknowledged."""
        largest = self._acknowledged.setdefault(group_id, {})
        largest[generation] = max(largest.get(generation, 0), offset)

    def fetched(self, group_id: str, generation: int, offset: int) -> None:
        """Judge the committed offset that a member of this generation has read."""
        if self.is_suspended:
            return
        earlier = self._acknowledged.get(group_id, {})
        least = max((each for number, each in earlier.items() if number < generation), default=-1)
        self._cluster.checks.judge(
            "offsets",
            offset >= least,
            "{}, generation {} finds offset {}, and {} was committed before",
            group_id,
            generation,
            offset,
            least,
        )

    @property
    def is_suspended(self) -> bool:
        """Whether coordinators may legally have forgotten offsets."""
        cluster = self._cluster
        history = cluster.checks.history(TopicPartition(GROUP_TOPIC, 0))
        return bool(history.resets or history.is_forked)
