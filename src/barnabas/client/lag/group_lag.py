"""Defines the lag of a group, as seen in one observation. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.admin.group_admin import GroupDescription
from barnabas.client.lag.summary import LagSum, SlowMember, add_up, slowest_member
from barnabas.client.lag.verdict import Verdict
from barnabas.types import TopicPartition


class GroupLag(NamedTuple):
    """A group, with the verdict on each partition that it reads."""

    group: GroupDescription
    verdicts: Mapping[TopicPartition, Verdict]
    unread_reason: str = ""  # why some records could not be counted

    @property
    def together(self) -> LagSum:
        """The sum of the lags of all partitions."""
        return add_up(self.verdicts.values())

    @property
    def slowest(self) -> SlowMember | None:
        """The member whose partitions need attention most."""
        return slowest_member(self.verdicts)
