"""Defines the JSON that the console's server sends to its page, one type for each address.

Times are in ms since 1970, sizes in bytes, rates per second. None means "not known", which is not
the same as 0: the page shows a dash for it.
"""

from __future__ import annotations

from typing import Literal, TypedDict

Severity = Literal["critical", "warning", "info"]


class Finding(TypedDict):
    """Something that needs a person: a line of `/api/overview`, the most severe first."""

    severity: Severity
    what: str
    """States the fact: "3 partitions have no leader"."""
    why: str
    """The cause, from an event of the cluster; "" if none is known. It is never a guess."""
    advice: str
    """States what to do; "" if nothing is known."""
    link: str
    """The page with the details, such as "#/topics/orders"."""


class EventRow(TypedDict):
    """An event of a Barnabas broker; `/api/events` lists them, the latest first."""

    at: int
    reporter: int
    """The broker that decided and reported this."""
    sequence: int
    kind: str
    text: str
    cause: str
    topic: str
    partition: int
    """-1: none."""
    group: str
    broker: int
    """The broker that the event is about; -1: none."""
    harmless: bool | None
    advice: str
    severity: Literal["INFO", "WARNING"]


class Events(TypedDict):
    """`/api/events?kind=&topic=&group=&broker=&since=&limit=&all=`.

    `/api/events/stream` takes the same filters and sends each new `EventRow` as it is found.
    """

    events: list[EventRow]
    kinds: list[str]
    """All kinds, for the filter."""
    silent: list[int]
    """Brokers that keep no events: a Kafka, or a Barnabas that denied the request."""


class Series(TypedDict):
    """A rate over the last minutes: `values[i]` at `times[i]`, None where nothing was measured."""

    times: list[int]
    values: list[float | None]


class Overview(TypedDict):
    """`/api/overview`: is the cluster well, and what needs a person?"""

    cluster_id: str
    title: str
    """The bootstrap servers, as given on the command line."""
    looked_at: int
    """The time of the last look at the cluster; all figures below are from then."""
    error: str
    """Why the last look failed, or "". The other figures are then from the look before."""
    lacks: str
    """What the console's user may not see, and the permission for it; "" if nothing is known."""
    findings: list[Finding]
    controller: int | None
    brokers: int
    topics: int
    partitions: int
    leaderless: int
    under_replicated: int
    groups: int
    groups_behind: int
    """Groups in a state worse than "steady"."""
    size: int | None
    """All replicas on disk."""
    records_in: Series
    """Records appended per second, from the growth of the partitions' ends."""
    events: list[EventRow]
    """The last ten."""
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
    """Replicas on this broker that are not in the ISR."""
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
    """None: no broker has answered in time, or it denied the request."""
    events: list[EventRow]
    silent: list[int]
    """As in `Events`, but only the broker of the page."""


class ConfigRow(TypedDict):
    """A config of a topic or broker."""

    name: str
    value: str | None
    """None: sensitive, so the broker does not show it."""
    source: str
    """In Kafka's words: "default", "dynamic topic", "static broker", and so on."""
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
    """The number of offsets between the starts and the ends: an upper bound of the records."""
    size: int | None
    records_in: float | None


class Topics(TypedDict):
    """`/api/topics?search=&sort=name|partitions|records|size|rate&descending=1&internal=1&page=`."""

    topics: list[TopicRow]
    """At most 100, those of the page."""
    matching: int
    """Topics that match the search, on all pages."""
    page: int


class Replica(TypedDict):
    """A replica of a partition."""

    broker: int
    is_leader: bool
    in_sync: bool
    is_alive: bool
    end: int | None
    """Its log end offset; known where the broker tells it."""
    size: int | None


class PartitionRow(TypedDict):
    """A partition of a topic."""

    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: list[Replica]
    """In the order of the assignment: the first is preferred."""
    start: int | None
    high_watermark: int | None
    size: int | None
    records_in: float | None


class Move(TypedDict):
    """A partition that is being reassigned."""

    partition: int
    adding: list[int]
    removing: list[int]
    replicas: list[int]
    """Those that it will have."""


class TopicPage(TypedDict):
    """`/api/topics/{name}`."""

    topic: TopicRow
    partitions: list[PartitionRow]
    moves: list[Move] | None
    """None: the controller has not answered in time, or it denied the request."""
    configs: list[ConfigRow] | None
    """None: no broker has answered in time, or it denied the request."""
    groups: list[str]
    """Groups that have committed offsets in it, or read it."""
    events: list[EventRow]
    silent: list[int]
    """As in `Events`."""
    records_in: Series


class Content(TypedDict):
    """A key, a value, or the value of a header."""

    text: str | None
    """None: null. JSON is as it was sent; the page formats it. Bytes that are not UTF-8, or have
    control characters other than tab, line ends and escape, are hex."""
    form: Literal["null", "json", "text", "hex"]
    size: int
    is_cut: bool
    """`text` is only the beginning; the whole is at the record's own address."""


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
    """In a list of messages at most the first 50."""
    headers_left_out: int


class Messages(TypedDict):
    """`/api/topics/{name}/messages?partition=&from=latest|earliest|OFFSET|time&at=MS&limit=&search=`.

    `partition` may be empty: all. `from=latest` sends the last `limit` records. `from=before` and
    `from=after` continue at `offsets=12.7..3`, one for each partition in order; an empty one is not
    known, and is read from the end or the start. `search` is a text
    that a key, a value or a header contains. `/api/topics/{name}/messages/stream` takes `partition`
    and `search`, and sends each new `Message`. `/api/topics/{name}/messages/PARTITION/OFFSET` sends
    one, uncut up to a megabyte.
    """

    messages: list[Message]
    """In the order of time."""
    scanned: int
    """Records that were read for it."""
    is_complete: bool
    """False: the limit of time or of records ended the search before the end of the range."""
    next: dict[str, int]
    """The offset of each partition at which the next request continues, with `from=after`."""
    previous: dict[str, int]
    """The offset of each partition below which `from=before` continues; {}: nothing is older."""


class GroupRow(TypedDict):
    """A group of `/api/groups`."""

    id: str
    state: str
    """The coordinator's word: Stable, Empty, PreparingRebalance, CompletingRebalance, Dead."""
    protocol: str
    members: int | None
    """None while the group has not been looked at: many groups are looked at in turns."""
    coordinator: int | None
    lag: int | None
    """Unread records; None while they are not counted yet."""
    lag_is_exact: bool
    """False: at most `lag`, since markers and gaps could not all be told apart."""
    seconds: float | None
    """How long the oldest unread record has waited."""
    verdict: str
    """The worst of its partitions: "caught up", "catching up", "steady", "unknown", "falling
    behind", "stopped", "stuck"."""
    catch_up: float | None
    """Seconds until it has caught up at the present rate; None: never, or unknown."""
    looked_at: int | None
    """The time of the look that the figures are from."""


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
    """Describes a group in one of its partitions."""

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
    """Whether it has been open for longer than its timeout."""


class Security(TypedDict):
    """`/api/security`."""

    error: str
    """Why a part cannot be shown: the cluster has no authorizer, or denies the request."""
    acls: list[AclRow]
    """The rules of one page."""
    page: int
    matching: int
    users: list[UserRow]
    """At most the first 500."""
    users_matching: int
    operations: dict[str, list[str]]
    """The operations that each type of resource has."""


class AccessExplanation(TypedDict):
    """`/api/security/explain`: whether the rules allow a request, and why."""

    error: str
    """Why the rules cannot be read."""
    allowed: bool | None
    """None if no rule is about the resource: the default of the brokers decides."""
    lines: list[str]
    """The lines of `barnabas acls explain`; a line indented by two spaces is a command."""
    rule: AclRow | None
    """The rule that decides."""


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

    401 means a console with sign-in but no session; 429, too many attempts to sign in. 403 means a
    wrong `Host`, or a request that the brokers deny; 503 means too many readers at a time. An
    action may also fail with 409 (the state has changed), 410 (the preview has expired), 411, 413
    or 415 (an unacceptable body), or 422 (rejected by Kafka).
    """

    error: str
    """A sentence that says what failed, where, and what to do."""


class Session(TypedDict):
    """`/api/session`: whether users sign in, and who has.

    To sign in, `{"user": ..., "password": ...}` is sent to `/api/session/sign-in` by POST, and to
    sign out, `{}` to `/api/session/sign-out`. Without a session, other addresses answer 401.
    """

    required: bool
    user: str
    """"" if nobody has signed in."""


class Actions(TypedDict):
    """`/api/actions`: the changes that the page may make. Without `--write`, none is enabled.

    An action is previewed by a POST to `/api/actions/NAME/preview`, with its fields as JSON, and
    carried out by a POST to `/api/actions/NAME/apply`, with `{"token": ...}`.
    """

    enabled: bool
    secret: str
    """The value of the header `X-Barnabas-Console` in each POST; "" if nothing is enabled."""
    names: list[str]


class ActionChange(TypedDict):
    """One of the changes that an action makes."""

    what: str
    before: str | None
    """None if it does not exist yet."""
    after: str | None
    """None if it will no longer exist."""
    about: str
    """Further facts, such as how many bytes are copied; "" if there are none."""


class ActionPreview(TypedDict):
    """The changes that an action would make; none is made yet."""

    title: str
    sentences: list[str]
    warnings: list[str]
    changes: list[ActionChange]
    token: str
    """Applies exactly this preview, once; "" if there is nothing to change."""
    seconds: float
    """How long the token is valid."""


class ActionResult(TypedDict):
    """The changes that an action made."""

    title: str
    sentences: list[str]
