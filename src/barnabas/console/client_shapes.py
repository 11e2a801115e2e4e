"""Defines the JSON of `/api/clients` and `/api/clients/producers`, in the form of `shapes`."""

from __future__ import annotations

from typing import TypedDict

from barnabas.console.shapes import EventRow


class ClientEvent(TypedDict):
    """The latest event about a client."""

    at: int
    kind: str
    text: str
    is_by_host: bool
    """The event names the client's host but not its client id; other clients may run there."""


class QuotaRow(TypedDict):
    """A quota, as it was set."""

    user: str | None
    """None: it is not set for users. "" stands for all users without a quota of their own; the
    same holds for the next two."""
    client_id: str | None
    ip: str | None
    key: str
    value: float


class ClientRow(TypedDict):
    """A member of a group."""

    client_id: str
    host: str
    group: str
    member: str
    instance_id: str | None
    topics: list[str]
    """The topics of its assigned partitions."""
    partitions: int
    some: list[str]
    """The first of its partitions, as "topic-partition"."""
    lag: int | None
    looked_at: int
    """When its group was queried."""
    quotas: list[QuotaRow]
    """Those that apply unless its user has a quota: nothing tells the user of a member."""
    events: int | None
    """Recent events that name it; None: no broker keeps events."""
    last_event: ClientEvent | None


class Clients(TypedDict):
    """`/api/clients?search=&sort=client|host|group|partitions&descending=1&page=`."""

    clients: list[ClientRow]
    matching: int
    page: int
    groups: int
    groups_known: int
    """Groups whose members are known: many groups are queried in turns."""
    error: str
    """Why the groups could not be listed, or ""."""
    quotas: list[QuotaRow]
    """At most 500."""
    quotas_left_out: int
    quotas_error: str
    """Why the quotas cannot be shown, or ""."""
    quotas_at: int | None
    """When they were queried; None: not yet."""
    events: list[EventRow]
    """The latest events of clients: throttled, denied, refused, or failed to authenticate."""
    silent: list[int]
    """As in `Events`."""


class OpenPart(TypedDict):
    """A partition in which a producer has an open transaction."""

    partition: str
    start: int
    """The offset at which the transaction starts."""


class ProducerRow(TypedDict):
    """A producer that partitions or a transaction coordinator know."""

    id: int
    epoch: int | None
    transactional_id: str | None
    state: str | None
    """The state of its transaction, in the coordinator's word."""
    started: int | None
    """When the open transaction began."""
    hangs: bool
    written_at: int | None
    """The latest time in its batches; None: no partition that was asked knows the producer."""
    partitions: int
    some: list[str]
    open: list[OpenPart]


class Producers(TypedDict):
    """`/api/clients/producers?search=&sort=id|transactional_id|written|partitions&page=`."""

    producers: list[ProducerRow]
    matching: int
    page: int
    partitions: int
    partitions_known: int
    """Partitions whose leaders have been asked; many partitions are asked in turns."""
    denied: int
    """Partitions whose producers the console's user may not see."""
    left_out: int
    """Producers that were dropped because only a limited number is kept."""
    error: str
    looked_at: int | None
