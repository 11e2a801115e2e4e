"""The end of a session: a member was silent for too long, or never used its member id (GC-2).

Each sign of life sets the deadline: a join, a heartbeat, a commit. `timers` finds those that have
passed.
"""

from __future__ import annotations

from barnabas.coordinator import rebalance
from barnabas.coordinator.decision import Turn
from barnabas.coordinator.group import Group
from barnabas.coordinator.rebalance_log import cause


def session_expired(turn: Turn, group: Group, member_id: str) -> None:
    """Expel the member, which begins a rebalance; drop a member id that was not used.

    A member that waits for the others cannot heartbeat, so it stays: its session begins again with
    the answer. Only a new one, which no client may know of, has a limit there.
    """
    if member_id in group.pending:
        rebalance.forget_pending(turn, group, member_id)
        return
    member = group.members[member_id]
    if member.is_new or not (member.joining or member.syncing):
        rebalance.expel(turn, group, member, cause(member, "session timed out"))
