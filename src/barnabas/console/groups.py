"""Describes consumer groups for `/api/groups`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from barnabas.client.admin.group_admin import GroupListing, MemberDescription
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.lag.summary import LagSum, add_up
from barnabas.client.lag.verdict import Basis, State, Verdict
from barnabas.console.query import Paging, in_order
from barnabas.console.shapes import GroupPartition, GroupRow, Groups, Member
from barnabas.console.snapshot import GroupLook
from barnabas.types import TopicPartition

_RANKS: Final = {state.value: state.severity for state in State}


def group_row(listing: GroupListing, look: GroupLook) -> GroupRow:
    """Return the row of a group, with its lag from the last poll of the group."""
    lag = look.lags.get(listing.group_id)
    row = GroupRow(
        id=listing.group_id,
        state=listing.state,
        protocol=listing.protocol_type,
        members=None,
        coordinator=None,
        lag=None,
        lag_is_exact=False,
        seconds=None,
        verdict=State.UNKNOWN.value,
        catch_up=None,
        looked_at=look.looked_at.get(listing.group_id),
    )
    if lag is None:
        return row
    group, together = lag.group, lag.together
    is_known = any(verdict.records is not None for verdict in lag.verdicts.values())
    row["state"], row["protocol"] = group.state, group.protocol_type
    row["members"], row["coordinator"] = len(group.members), group.coordinator.node_id
    row["lag"] = together.records if is_known or not lag.verdicts else None
    row["lag_is_exact"] = together.is_exact
    row["seconds"] = _seconds(together)
    row["verdict"], row["catch_up"] = together.state.value, together.catch_up_s
    return row


def _seconds(together: LagSum) -> float | None:
    return None if together.age is None else together.age.seconds


_KEYS: Final[Mapping[str, Callable[[GroupRow], Any]]] = {
    "id": lambda row: row["id"],
    "lag": lambda row: row["lag"],
    "seconds": lambda row: row["seconds"],
    # A group that has not been polled has no verdict, not even "unknown".
    "verdict": lambda row: None if row["members"] is None else _RANKS[row["verdict"]],
}
SORTS: Final = tuple(_KEYS)


def group_list(look: GroupLook, wanted: Paging) -> Groups:
    """Return one page of groups. Groups without a value in the sort column come last."""
    rows = [
        group_row(listing, look)
        for group_id, listing in sorted(look.listings.items())
        if wanted.search in group_id.casefold()
    ]
    rows = in_order(rows, _KEYS[wanted.sort], descending=wanted.descending)
    return Groups(groups=list(wanted.rows(rows)), matching=len(rows), page=wanted.page)


def behind(lags: Iterable[GroupLag]) -> int:
    """Return the number of groups known to be in a worse state than steady."""
    return sum(lag.together.state.severity > State.UNKNOWN.severity for lag in lags)


def readers_of(topic: str, lags: Iterable[GroupLag]) -> list[str]:
    """Return the groups that read a topic or have committed offsets for it."""
    return sorted(
        lag.group.group_id for lag in lags if any(name.topic == topic for name in lag.verdicts)
    )


def member_rows(lag: GroupLag) -> list[Member]:
    """Return the members of a group, each with its total lag."""
    verdicts: dict[str, list[Verdict]] = {}
    for verdict in lag.verdicts.values():
        verdicts.setdefault(verdict.sample.member or "", []).append(verdict)
    owned = Counter(verdict.sample.member for verdict in lag.verdicts.values())
    slowest = lag.slowest

    def row(member: MemberDescription) -> Member:
        own = verdicts.get(member.member_id, [])
        is_known = all(verdict.records is not None for verdict in own)
        return Member(
            id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            host=member.host,
            partitions=len(member.partitions) or owned[member.member_id],
            lag=add_up(own).records if is_known else None,
            is_slowest=slowest is not None and slowest.member == member.member_id,
        )

    return [row(member) for member in lag.group.members]


def partition_rows(lag: GroupLag) -> list[GroupPartition]:
    """Return a row for each partition read by a group."""
    return [_partition_row(name, each) for name, each in sorted(lag.verdicts.items())]


def _partition_row(name: TopicPartition, verdict: Verdict) -> GroupPartition:
    sample, age, pace = verdict.sample, verdict.age, verdict.pace
    basis: dict[Basis, Any] = {each: each.value for each in Basis}
    return GroupPartition(
        topic=name.topic,
        partition=name.partition,
        member=sample.member,
        committed=sample.committed,
        start=sample.start,
        end=sample.end,
        lag=verdict.records,
        lag_is_exact=verdict.is_exact,
        seconds=None if age is None else age.seconds,
        seconds_basis=None if age is None else basis[age.basis],
        verdict=verdict.state.value,
        reason=verdict.reason,
        rate_in=None if pace is None else pace.write_rate,
        rate_out=None if pace is None else pace.read_rate,
        catch_up=verdict.catch_up_s,
    )
