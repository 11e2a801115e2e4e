"""Describes clients and producers for `/api/clients`. Pure.

Only what the brokers report is shown: group members, producers with an id, and quotas. The protocol
reports neither consumers without a group nor the host of a producer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from barnabas.client.admin.group_admin import MemberDescription
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.lag.summary import add_up
from barnabas.console.client_events import ClientEvents, plain_host
from barnabas.console.client_look import ClientSnapshot, Quotas
from barnabas.console.client_shapes import ClientRow, Clients, QuotaRow
from barnabas.console.findings import Known
from barnabas.console.query import Paging, in_order
from barnabas.types import TopicPartition

_MOST_QUOTAS: Final = 500
_MOST_EVENTS: Final = 50
_SOME: Final = 5
_MOST_TOPICS: Final = 20


class _Member(NamedTuple):
    """Represents a member whose row has not been built yet. Rows are built only for the members on
    the page.
    """

    group: str
    lag: GroupLag
    member: MemberDescription


_KEYS: Final[Mapping[str, Callable[[_Member], Any]]] = {
    "client": lambda one: (one.member.client_id, plain_host(one.member.host)),
    "host": lambda one: plain_host(one.member.host),
    "group": lambda one: one.group,
    "partitions": lambda one: len(one.member.partitions),
}
SORTS: Final = tuple(_KEYS)


def client_list(
    known: Known, clients: ClientSnapshot, events: ClientEvents, wanted: Paging
) -> Clients:
    """Return one page of the members of all groups whose members are known."""
    found = [one for one in _members(known.groups.lags) if _matches(one, wanted.search)]
    found = in_order(found, _KEYS[wanted.sort], descending=wanted.descending)
    quotas = _rows(clients.quotas)
    silent = set(known.events.silent)
    has_events = any(broker not in silent for broker in known.look.live)
    rows = [_row(one, known, quotas, events if has_events else None) for one in wanted.rows(found)]
    return Clients(
        clients=rows,
        matching=len(found),
        page=wanted.page,
        groups=len(known.groups.listings),
        groups_known=len(known.groups.lags),
        error=known.groups.error,
        quotas=quotas[:_MOST_QUOTAS],
        quotas_left_out=max(0, len(quotas) - _MOST_QUOTAS),
        quotas_error=clients.quotas_error,
        quotas_at=clients.quotas_at_ms or None,
        events=events.rows[:_MOST_EVENTS],
        silent=known.events.silent,
    )


def _members(lags: Mapping[str, GroupLag]) -> Iterator[_Member]:
    for group_id, lag in sorted(lags.items()):
        for member in sorted(lag.group.members):
            yield _Member(group_id, lag, member)


def _matches(one: _Member, search: str) -> bool:
    member = one.member
    texts = (member.client_id, member.host, one.group, member.member_id, member.instance_id or "")
    return not search or any(search in text.casefold() for text in texts)


def _row(
    one: _Member, known: Known, quotas: Iterable[QuotaRow], events: ClientEvents | None
) -> ClientRow:
    member = one.member
    verdicts = {
        name: each
        for name, each in one.lag.verdicts.items()
        if each.sample.member == member.member_id
    }
    partitions: list[TopicPartition] = sorted(member.partitions or verdicts)
    is_known = all(verdict.records is not None for verdict in verdicts.values())
    count, last = (None, None) if events is None else events.of(member.client_id, member.host)
    return ClientRow(
        client_id=member.client_id,
        host=plain_host(member.host),
        group=one.group,
        member=member.member_id,
        instance_id=member.instance_id,
        topics=list(dict.fromkeys(name.topic for name in partitions))[:_MOST_TOPICS],
        partitions=len(partitions),
        some=[str(name) for name in partitions[:_SOME]],
        lag=add_up(verdicts.values()).records if is_known else None,
        looked_at=known.groups.looked_at[one.group],
        quotas=quotas_of(member.client_id, plain_host(member.host), quotas),
        events=count,
        last_event=last,
    )


def quotas_of(client_id: str, host: str, quotas: Iterable[QuotaRow]) -> list[QuotaRow]:
    """Return the quotas that apply to a client id and host, at most one for each quota key.

    Quotas that are set for the user would take precedence, but no broker reports which user a
    member belongs to.
    """
    found: dict[str, QuotaRow] = {}
    for row in quotas:
        if row["user"] is not None:
            continue
        kind, own = ("ip", host) if row["client_id"] is None else ("client_id", client_id)
        name = row["ip"] if kind == "ip" else row["client_id"]
        # "" is the default for entities without a quota of their own.
        if name == own or (name == "" and row["key"] not in found):
            found[row["key"]] = row
    return [found[key] for key in sorted(found)]


def _rows(quotas: Quotas) -> list[QuotaRow]:
    rows = [
        _quota_row(dict(entity), key, value)
        for entity, values in quotas.items()
        for key, value in values.items()
    ]
    return sorted(rows, key=lambda row: (_order(row), row["key"]))


def _quota_row(entity: Mapping[str, str | None], key: str, value: float) -> QuotaRow:
    def name(kind: str) -> str | None:
        return (entity[kind] or "") if kind in entity else None

    return QuotaRow(
        user=name("user"), client_id=name("client-id"), ip=name("ip"), key=key, value=value
    )


def _order(row: QuotaRow) -> tuple[str, str, str]:
    return row["user"] or "", row["client_id"] or "", row["ip"] or ""
