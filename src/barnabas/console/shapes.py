"""Defines the JSON that the console's server sends to the page, with one type for each address.

Times are in ms since 1970, sizes in bytes, and rates per second. None means "not known", which is
different from 0. The page then shows a dash.
"""

from __future__ import annotations

from typing import Literal, TypedDict

Severity = Literal["critical", "warning", "info"]


class Finding(TypedDict):
    """A finding that needs human attention. `/api/overview` lists the findings, with the most
    severe first.
    """

    severity: Severity
    what: str
    """States what was observed, such as "3 partitions have no leader"."""
    why: str
    """The cause, taken from an event of the cluster, or "" if the cause is not known. It is never a
    guess.
    """
    at: int | None
    """The time of that event, or None if the cause is not known."""
    advice: str
    """States what to do, or "" if there is no advice."""
    link: str
    """The address of the page with the details, such as "#/topics/orders"."""


class EventRow(TypedDict):
    """An event of a Barnabas broker. `/api/events` lists the events, with the latest first."""

    at: int
    reporter: int
    """The broker that made the decision and reported the event."""
    sequence: int
    kind: str
    text: str
    cause: str
    topic: str
    partition: int
    """-1: none."""
    group: str
    broker: int
    """The broker that the event is about, or -1 if it is not about a broker."""
    harmless: bool | None
    advice: str
    severity: Literal["INFO", "WARNING"]


class Events(TypedDict):
    """`/api/events?kind=&topic=&group=&broker=&since=&limit=&all=`.

    `/api/events/stream` takes the same filters and sends each new `EventRow` as it is found.
    """

    events: list[EventRow]
    kinds: list[str]
    """All event kinds, for the filter on the page."""
    silent: list[int]
    """The brokers that keep no events: Kafka brokers, and Barnabas brokers that denied the request.
    """


class Series(TypedDict):
    """A rate over the last minutes: `values[i]` was measured at `times[i]`, and is None if nothing
    was measured.
    """

    times: list[int]
    values: list[float | None]


class Overview(TypedDict):
    """`/api/overview`: whether the cluster is well, and what needs human attention."""

    cluster_id: str
    title: str
    """The bootstrap servers, as given on the command line."""
    looked_at: int
    """The time of the last successful poll of the cluster, to which all figures below refer."""
    error: str
    """Why the last poll failed, or "" if it succeeded. After a failure, the other figures are from
    an earlier poll.
    """
    lacks: str
    """What the console's user is not allowed to see, and the permission required for it; "" if
    nothing is known to be missing.
    """
    findings: list[Finding]
    controller: int | None
    brokers: int
    topics: int
    partitions: int
    leaderless: int
    under_replicated: int
    groups: int
    groups_behind: int
    """The number of groups in a worse state than "steady"."""
    size: int | None
    """The total size of all replicas on disk."""
    records_in: Series
    """The records appended per second, computed from the growth of the partitions' end offsets."""
    events: list[EventRow]
    """The last ten events."""
    silent: list[int]
    """As in `Events`."""


class BrokerRow(TypedDict):
    """A broker of `/api/brokers`, which sends `{"brokers": [...]}`."""

    id: int
    host: str
    port: int
    rack: str | None
    is_controller: bool
    leaders: int
    replicas: int
    out_of_sync: int
    """The number of replicas on this broker that are not in the ISR."""
    size: int | None
    directories: list[Directory]


class Directory(TypedDict):
    """A log directory of a broker."""

    path: str
    error: str
    size: int
    total: int | None
    usable: int | None


class BrokerPage(TypedDict):
    """`/api/brokers/{id}`."""

    broker: BrokerRow
    configs: list[ConfigRow] | None
    """None if no broker has answered in time, or if a broker denied the request."""
    events: list[EventRow]
    silent: list[int]
    """As in `Events`, but only if it is the broker of the page."""


class ConfigRow(TypedDict):
    """A config of a topic or broker."""

    name: str
    value: str | None
    """None if the value is sensitive, because the broker does not return sensitive values."""
    source: str
    """The source as Kafka calls it: "default", "dynamic topic", "static broker", and so on."""
    is_default: bool
    is_read_only: bool


class TopicRow(TypedDict):
    """A topic of `/api/topics`."""

    name: str
    is_internal: bool
    partitions: int
    replication_factor: int
    leaderless: int
    under_replicated: int
    records: int | None
    """The number of offsets between the start and the end of the logs, which is an upper bound for
    the number of records.
    """
    size: int | None
    records_in: float | None


class Topics(TypedDict):
    """`/api/topics?search=&sort=name|partitions|records|size|rate&descending=1&internal=1&page=`."""

    topics: list[TopicRow]
    """The topics of this page, of which there are at most 100."""
    matching: int
    """The number of topics on all pages that match the search."""
    page: int


class Replica(TypedDict):
    """A replica of a partition."""

    broker: int
    is_leader: bool
    in_sync: bool
    is_alive: bool
    end: int | None
    """The log end offset of the replica, if the broker reports it."""
    size: int | None


class PartitionRow(TypedDict):
    """A partition of a topic."""

    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: list[Replica]
    """The replicas in the order of the assignment. The first replica is the preferred leader."""
    start: int | None
    high_watermark: int | None
    size: int | None
    records_in: float | None


class Move(TypedDict):
    """A partition with a reassignment in progress."""

    partition: int
    adding: list[int]
    removing: list[int]
    replicas: list[int]
    """The replicas of the partition after the reassignment."""


class TopicPage(TypedDict):
    """`/api/topics/{name}`."""

    topic: TopicRow
    partitions: list[PartitionRow]
    moves: list[Move] | None
    """None if the controller did not answer in time, or if it denied the request."""
    configs: list[ConfigRow] | None
    """None if no broker has answered in time, or if a broker denied the request."""
    groups: list[str]
    """The groups that read the topic or have committed offsets for it."""
    events: list[EventRow]
    silent: list[int]
    """As in `Events`."""
    records_in: Series


class Content(TypedDict):
    """A record's key or value, or the value of a header."""

    text: str | None
    """The text, or None for null. JSON is passed on unchanged, and the page formats it. Bytes are
    shown as hex if they are not UTF-8 or if they contain control characters other than tab, line
    ends and escape."""
    form: Literal["null", "json", "text", "hex"]
    size: int
    is_cut: bool
    """True if `text` is only the beginning. The record's own address returns the whole content."""


class Header(TypedDict):
    """A header of a record."""

    name: str
    value: Content


class Message(TypedDict):
    """A record of a topic."""

    partition: int
    offset: int
    time: int | None
    time_type: Literal["create", "append"]
    key: Content
    value: Content
    headers: list[Header]
    """The headers. A list of messages includes at most the first 50 headers of each message."""
    headers_left_out: int


class Messages(TypedDict):
    """`/api/topics/{name}/messages?partition=&from=latest|earliest|OFFSET|time&at=MS&limit=&search=`.

    An empty `partition` selects all partitions. `from=latest` returns the last `limit` records.
    `from=before` and `from=after` continue at `offsets=12.7..3`, which lists the offset for each
    partition in order; if an offset is empty, it is not known, and the partition is read from its
    end or its start. `search` is a text that a key, a value or a header must contain.
    `/api/topics/{name}/messages/stream` accepts `partition` and `search`, and sends each new
    `Message`. `/api/topics/{name}/messages/PARTITION/OFFSET` returns one record, truncated only
    above a megabyte.
    """

    messages: list[Message]
    """The messages in order of time."""
    scanned: int
    """The number of records that were read for the search."""
    is_complete: bool
    """False if the search ended before the end of the range because of the limit on time or on
    records.
    """
    next: dict[str, int]
    """For each partition, the offset at which a request with `from=after` continues."""
    previous: dict[str, int]
    """For each partition, the offset below which a request with `from=before` continues; {} if
    there are no older records.
    """


class GroupRow(TypedDict):
    """A group of `/api/groups`."""

    id: str
    state: str
    """The state as reported by the coordinator: Stable, Empty, PreparingRebalance,
    CompletingRebalance, Dead.
    """
    protocol: str
    members: int | None
    """None until the group is polled for the first time. If there are many groups, they are polled
    in turns.
    """
    coordinator: int | None
    lag: int | None
    """The number of unread records, or None until they have been counted."""
    lag_is_exact: bool
    """False if `lag` is only an upper bound, because not all markers and gaps could be
    distinguished from records.
    """
    seconds: float | None
    """How long the oldest unread record has waited."""
    verdict: str
    """The worst state of the group's partitions: "caught up", "catching up", "steady", "unknown",
    "falling behind", "stopped", "stuck"."""
    catch_up: float | None
    """The seconds until the group has caught up at its present rate, or None if it never will or if
    this is not known.
    """
    looked_at: int | None
    """The time of the poll from which the figures are taken."""


class Groups(TypedDict):
    """`/api/groups?search=&sort=id|lag|seconds|verdict&descending=1&page=`."""

    groups: list[GroupRow]
    matching: int
    page: int


class Member(TypedDict):
    """A member of a group."""

    id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: int
    lag: int | None
    is_slowest: bool


class GroupPartition(TypedDict):
    """Describes a group's progress in one partition."""

    topic: str
    partition: int
    member: str | None
    committed: int | None
    start: int | None
    end: int | None
    lag: int | None
    lag_is_exact: bool
    seconds: float | None
    seconds_basis: Literal["record", "watch", "bound"] | None
    verdict: str
    reason: str
    rate_in: float | None
    rate_out: float | None
    catch_up: float | None


class GroupPage(TypedDict):
    """`/api/groups/{id}`."""

    group: GroupRow
    members: list[Member]
    partitions: list[GroupPartition]
    lag: Series
    """The total number of unread records, over the last minutes."""
    events: list[EventRow]
    silent: list[int]
    """As in `Events`."""


class TransactionRow(TypedDict):
    """A transaction of `/api/transactions`, which sends `{"transactions": [...]}`."""

    id: str
    state: str
    coordinator: int
    producer_id: int
    producer_epoch: int | None
    started: int | None
    timeout: int | None
    partitions: list[str]
    """As "topic-partition"."""
    hangs: bool
    """Whether the transaction has been open for longer than its timeout."""


class Security(TypedDict):
    """`/api/security`."""

    error: str
    """Why a part cannot be shown. Either the cluster has no authorizer, or it denied the
    request.
    """
    acls: list[AclRow]
    """The ACLs of one page."""
    page: int
    matching: int
    users: list[UserRow]
    """At most the first 500 users."""
    users_matching: int
    operations: dict[str, list[str]]
    """The operations that apply to each resource type."""


class AccessExplanation(TypedDict):
    """`/api/security/explain`: whether the ACLs allow a request, and why."""

    error: str
    """Why the ACLs cannot be read."""
    allowed: bool | None
    """None if no ACL applies to the resource, so that the brokers' default decides."""
    lines: list[str]
    """The lines that `barnabas acls explain` prints. A line indented by two spaces is a command."""
    rule: AclRow | None
    """The ACL that decides."""


class AclRow(TypedDict):
    """An access control rule."""

    principal: str
    permission: Literal["allow", "deny"]
    operation: str
    resource_type: str
    pattern_type: str
    resource: str
    host: str


class UserRow(TypedDict):
    """A user with SCRAM credentials."""

    name: str
    mechanisms: list[str]


class Problem(TypedDict):
    """The response to a failed request: status 400, 401, 403, 404, 405, 429, 502, 503 or 504.

    401 means that the console requires sign-in and there is no session; 429 means that there were
    too many attempts to sign in. 403 means that the `Host` is wrong or that the brokers denied the
    request; 503 means that too many readers are running. An action may also fail with 409 (the
    state has changed), 410 (the preview has expired), 411, 413 or 415 (an unacceptable body), or
    422 (rejected by Kafka).
    """

    error: str
    """A sentence that says what failed, where, and what to do."""


class Session(TypedDict):
    """`/api/session`: whether users sign in, and who is signed in.

    To sign in, the page sends `{"user": ..., "password": ...}` to `/api/session/sign-in` by POST;
    to sign out, it sends `{}` to `/api/session/sign-out`. Without a session, all other addresses
    return 401.
    """

    required: bool
    user: str
    """The name of the signed-in user, or ""."""
    ended: str
    """A sentence that says why the session of this browser has ended, or ""."""


class Actions(TypedDict):
    """`/api/actions`: the changes that the page may make. Without `--write`, no action is enabled.

    An action is previewed by a POST to `/api/actions/NAME/preview`, with its fields as JSON, and
    carried out by a POST to `/api/actions/NAME/apply`, with `{"token": ...}`.
    """

    enabled: bool
    secret: str
    """The value required in the header `X-Barnabas-Console` of each POST, or "" if no action is
    enabled.
    """
    names: list[str]


class ActionChange(TypedDict):
    """One of the changes made by an action."""

    what: str
    before: str | None
    """None if the object does not exist yet."""
    after: str | None
    """None if the object will no longer exist."""
    about: str
    """Further facts, such as how many bytes are copied, or "" if there are none."""


class ActionPreview(TypedDict):
    """The changes that an action would make. None of them has been made yet."""

    title: str
    sentences: list[str]
    warnings: list[str]
    changes: list[ActionChange]
    token: str
    """The token with which exactly this preview can be applied once, or "" if there is nothing to
    change.
    """
    seconds: float
    """How long the token is valid."""


class ActionResult(TypedDict):
    """The changes made by an action."""

    title: str
    sentences: list[str]
