"""Sums up the lag of a group over its partitions, and finds its slowest member. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.client.lag.verdict import Age, Basis, State, Verdict
from barnabas.types import TopicPartition


class LagSum(NamedTuple):
    """The total lag of several partitions."""

    state: State  # the state that needs the most attention
    records: int  # at most this many are unread, in the partitions where this is known
    is_exact: bool  # an exact count, with no partition omitted
    age: Age | None  # age of the record that has waited longest
    catch_up_s: float | None  # time until all partitions are caught up; None: never, or unknown


class SlowMember(NamedTuple):
    """The member whose partitions need attention most."""

    member: str
    partitions: int  # the group's partitions with unread records
    lag: LagSum


def add_up(verdicts: Iterable[Verdict]) -> LagSum:
    """Return the total lag of these partitions, or zero if there are none."""
    found = list(verdicts)
    times_s = [verdict.catch_up_s for verdict in found]
    known_s = [time_s for time_s in times_s if time_s is not None]
    ages = [verdict.age for verdict in found if verdict.age is not None]
    return LagSum(
        max((verdict.state for verdict in found), key=_severity, default=State.CAUGHT_UP),
        sum(verdict.records for verdict in found if verdict.records is not None),
        all(verdict.is_exact for verdict in found),
        _oldest(ages, is_complete=len(ages) == len(found)),
        max(known_s, default=0.0) if len(known_s) == len(times_s) else None,
    )


def slowest_member(verdicts: Mapping[TopicPartition, Verdict]) -> SlowMember | None:
    """Return the member that needs attention most, or None if there are no unread records.

    A member in a worse state comes first, then the one whose record has waited longer, then the one
    with more records.
    """
    behind: dict[str, list[Verdict]] = {}
    for verdict in verdicts.values():
        member = verdict.sample.member
        if member is not None and verdict.state is not State.CAUGHT_UP:
            behind.setdefault(member, []).append(verdict)
    members = [SlowMember(name, len(own), add_up(own)) for name, own in sorted(behind.items())]
    return max(members, key=_need, default=None)


def with_neighbours(verdicts: Mapping[TopicPartition, Verdict]) -> dict[TopicPartition, Verdict]:
    """Return the verdicts. If one is stuck, say whether its member makes progress elsewhere.

    If the member makes progress in its other partitions, a single record may be the problem;
    otherwise, the member is.
    """
    found = dict(verdicts)
    for name, verdict in verdicts.items():
        if verdict.state is not State.STUCK:
            continue
        others = [
            other
            for each, other in verdicts.items()
            if each != name and other.sample.member == verdict.sample.member
        ]
        if any(other.pace is not None and other.pace.read_rate > 0 for other in others):
            more = "; the member reads its other partitions, so look at the record at that offset"
        elif any(other.state is State.STUCK for other in others):
            more = "; other partitions of the member are stuck too, so look at the member"
        else:
            continue
        found[name] = verdict._replace(reason=verdict.reason + more)
    return found


def _severity(state: State) -> int:
    return state.severity


def _need(slow: SlowMember) -> tuple[int, float, int]:
    seconds = 0.0 if slow.lag.age is None else slow.lag.age.seconds
    return slow.lag.state.severity, seconds, slow.lag.records


def _oldest(ages: list[Age], *, is_complete: bool) -> Age | None:
    oldest = max(ages, key=lambda age: age.seconds, default=None)
    if oldest is None:
        return None if not is_complete else Age(0.0, Basis.RECORD)
    # A partition whose age is unknown or only a bound may have an older record.
    if not is_complete or any(age.basis is Basis.BOUND for age in ages):
        return oldest._replace(basis=Basis.BOUND)
    return oldest
