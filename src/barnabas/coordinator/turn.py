"""One event on its way through the machine of groups: the time, and what is to be done so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import NOTHING, Decision, Now, Reply, StateRecord

if TYPE_CHECKING:
    from barnabas.coordinator.group_config import GroupConfig
    from barnabas.coordinator.timers import Timers
    from barnabas.protocol.message import Message


class Turn:
    """Gathers a decision. One event can answer many: the last one to join answers for all."""

    __slots__ = ("config", "now", "now_ms", "records", "replies", "stories", "timers")

    def __init__(self, config: GroupConfig, timers: Timers, now: Now) -> None:
        self.config = config
        self.timers = timers
        self.now = now
        self.now_ms = now.monotonic_ms
        self.records: list[StateRecord] = []
        self.replies: list[Reply] = []
        self.stories: list[str] = []

    def reply(self, ticket: int, message: Message) -> None:
        self.replies.append(Reply(ticket, message))

    def decision(self) -> Decision:
        if not (self.records or self.replies or self.stories):
            return NOTHING
        return Decision(
            records=tuple(self.records),
            replies=tuple(self.replies),
            stories=tuple(self.stories),
        )
