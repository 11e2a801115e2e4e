"""Builds the log line for a rebalance: its causes, its duration and the partitions that moved.

    group orders: generation 4 -> 5 in 3012 ms, 3 members: web-5f3ab2c1 (/10.0.0.7) joined;
    moved 2 of 12 partitions: orders-4, orders-5 from app-09c7d1e2 to web-5f3ab2c1
    group orders: generation 5 -> 6 in 8 ms, 3 members: web-5f3ab2c1 (/10.0.0.7) rejoined as leader;
    harmless: nothing moved

A rebalance begins with its first cause and ends when the group is stable again or empty. It
includes every cause in between, even if a generation was abandoned. This is soft state: if the
group's coordinator has moved, earlier rebalances are in the log of the old broker.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.coordinator.decision import Now
from barnabas.coordinator.member import short_name
from barnabas.coordinator.movement import UNKNOWN, Assignments, Movement
from barnabas.counted import counted
from barnabas.events import Event
from barnabas.protocol.messages.describe_groups import RebalanceEvent

if TYPE_CHECKING:
    from barnabas.coordinator.member import Member

KEPT_EVENTS: Final = 20
_CAUSES_SHOWN = 3
_MOVES_SHOWN = 8
_REASON_CHARACTERS, _LINE_CHARACTERS = 80, 2_000


class Cause(NamedTuple):
    """A reason why a group rebalances."""

    who: str
    what: str
    advice: str = ""
    """Advice to the operator about this cause, or an empty string if there is none."""
    is_own_choice: bool = False
    """True if the member itself left the group, as a consumer does when it is closed."""

    def __str__(self) -> str:
        return f"{self.who} {self.what}"


class RebalanceLog:
    """Collects the causes of the rebalance in progress."""

    __slots__ = ("_all_left", "_causes", "_more", "before", "begun_ms", "generation")

    def __init__(self, begun_ms: int, generation: int, before: Assignments) -> None:
        self.begun_ms = begun_ms
        self.generation = generation
        """The generation that existed before the rebalance."""
        self.before = before
        self._causes: list[Cause] = []
        self._more = 0
        self._all_left = True

    def add(self, cause: Cause) -> None:
        """Add a cause."""
        self._all_left = self._all_left and cause.is_own_choice
        # Log only one line, even if a thousand members join at the same time.
        if len(self._causes) < _CAUSES_SHOWN:
            self._causes.append(cause)
        else:
            self._more += 1

    def end(
        self, now: Now, group_id: str, generation: int, members: int, moved: Movement
    ) -> RebalanceEvent:
        """End the rebalance if the group is stable or empty. Return the event to store and log."""
        if not members and self._all_left:
            # The partitions were not taken from anybody, because every member gave up its own.
            moved = moved._replace(is_harmless=True)
        duration_ms = now.monotonic_ms - self.begun_ms
        count = counted(members, "member") if members else "empty"
        line = (
            f"group {group_id}: generation {self.generation} -> {generation}"
            f" in {duration_ms} ms, {count}: {self._why()}; {_movement(moved)}"
        )
        return RebalanceEvent(
            ended_at_ms=now.wall_ms,
            duration_ms=duration_ms,
            generation_id=generation,
            member_count=members,
            moved_partitions=moved.moved,
            is_harmless=moved.is_harmless,
            story=_one_line(line),
        )

    def event(self, group_id: str, ended: RebalanceEvent) -> Event:
        """Convert the result of `end` into an event for the broker's log."""
        advice = next((each.advice for each in self._causes if each.advice), "")
        return Event(
            "group-generation",
            ended.story,
            _one_line(self._why()),
            group=group_id,
            is_harmless=ended.is_harmless,
            advice=advice,
        )

    def _why(self) -> str:
        causes = ", ".join(map(str, self._causes))
        return f"{causes} and {self._more} more" if self._more else causes


def _one_line(line: str) -> str:
    """Escape names and reasons, which are not trusted, so that the text is one safe line."""
    return "".join(c if c.isprintable() else " " for c in line[:_LINE_CHARACTERS])


def cause(member: Member, what: str, reason: str | None = None, advice: str = "") -> Cause:
    """Return a cause that names the member and the reason that the member sent (KIP-800)."""
    who = f"{short_name(member.name)} ({member.client_host})"
    if reason:
        what = f"{what} ({reason[:_REASON_CHARACTERS]})"
    return Cause(who, what, advice)


def _movement(moved: Movement) -> str:
    if moved.moved == UNKNOWN:
        return "harmless: no member lost anything" if moved.is_harmless else "assignments changed"
    parts = []
    if moved.moves:
        moves = "; ".join(_moves(moved.moves[:_MOVES_SHOWN]))
        if moved.moved > _MOVES_SHOWN:
            moves += f"; and {moved.moved - _MOVES_SHOWN} more"
        parts.append(f"moved {moved.moved} of {_partitions(moved.total)}: {moves}")
    if moved.taken:
        parts.append(f"{_partitions(moved.taken)} unassigned")
    if moved.given:
        parts.append(f"{_partitions(moved.given)} newly assigned")
    what = ", ".join(parts) or "nothing moved"
    return f"harmless: {what}" if moved.is_harmless else what


def _partitions(count: int) -> str:
    return counted(count, "partition")


def _moves(moves: tuple[tuple[object, str, str], ...]) -> Iterator[str]:
    for (old, new), same in groupby(moves, key=lambda move: move[1:]):
        partitions = ", ".join(str(partition) for partition, _, _ in same)
        yield f"{partitions} from {short_name(old)} to {short_name(new)}"
