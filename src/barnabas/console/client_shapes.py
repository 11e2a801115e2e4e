"""Defines the JSON of `/api/clients` and `/api/clients/producers`. See `shapes` for the
conventions.
"""

from __future__ import annotations

from typing import TypedDict

from barnabas.console.shapes import EventRow


class ClientEvent(TypedDict):
    """The latest event about a client."""

    at: int
    kind: str
    text: str
    is_by_host: bool
    """True if the event names the client's host but not its client id. The event may then be about
    another client on the same host.
    """


class QuotaRow(TypedDict):
    """A quota as it was configured."""

    user: str | None
    """None if the quota is not set for a user. "" is the default for users without a quota of their
    own. The next two fields follow the same rule.
    """
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
    """The topics of the partitions assigned to the member."""
    partitions: int
    some: list[str]
    """The first of the assigned partitions, as "topic-partition"."""
    lag: int | None
    looked_at: int
    """The time when the member's group was queried."""
    quotas: list[QuotaRow]
    """The quotas that apply unless the user has a quota of their own. The brokers do not report
    which user a member belongs to.
    """
    events: int | None
    """The number of recent events that name the member, or None if no broker keeps events."""
    last_event: ClientEvent | None


class Clients(TypedDict):
    """`/api/clients?search=&sort=client|host|group|partitions&descending=1&page=`."""

    clients: list[ClientRow]
    matching: int
    page: int
    groups: int
    groups_known: int
    """The number of groups whose members are known. If there are many groups, they are queried in
    turns.
    """
    error: str
    """Why the groups could not be listed, or ""."""
    quotas: list[QuotaRow]
    """At most 500."""
    quotas_left_out: int
    quotas_error: str
    """Why the quotas cannot be shown, or ""."""
    quotas_at: int | None
    """The time when the quotas were queried, or None if they have not been queried yet."""
    events: list[EventRow]
    """The latest events about clients that were throttled, denied access, refused a connection, or
    could not be authenticated.
    """
    silent: list[int]
    """As in `Events`."""


class OpenPart(TypedDict):
    """A partition in which a producer has an open transaction."""

    partition: str
    start: int
    """The offset at which the transaction starts."""


class ProducerRow(TypedDict):
    """A producer known to partitions or to a transaction coordinator."""

    id: int
    epoch: int | None
    transactional_id: str | None
    state: str | None
    """The state of the transaction, as the coordinator calls it."""
    started: int | None
    """The time when the open transaction began."""
    hangs: bool
    written_at: int | None
    """The latest timestamp in the producer's batches, or None if no queried partition knows the
    producer.
    """
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
    """The number of partitions whose leaders have been queried. If there are many partitions, they
    are queried in turns.
    """
    denied: int
    """The number of partitions for which the console's user is not allowed to see the producers."""
    left_out: int
    """The number of producers dropped because only a limited number is kept."""
    error: str
    looked_at: int | None
