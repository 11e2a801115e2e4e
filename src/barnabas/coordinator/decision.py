"""Defines a coordinator machine's decision on an event, and how a group event builds one.

The machine's driver appends the records in one batch, and applies them in order once they are in
the log. (A very large number of tombstones takes several batches, so an early batch may be in the
log when a later one is rejected.) Once the high watermark has passed the records, the driver sends
the replies that depend on them (`Reply.after`) and starts writing the markers. If the append is
rejected, the decision has no effect, and every ticket among the replies receives the error instead.
A request that its own decision does not answer stays parked in the machine, and a later decision
answers its ticket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.events import Event
from barnabas.protocol.message import Message
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.coordinator.settings import GroupConfig
    from barnabas.coordinator.timers import Timers

NO_PRODUCER_ID = -1


class Now(NamedTuple):
    """The time of an event, on both of a broker's clocks (`clock`)."""

    monotonic_ms: int
    """The clock for sessions, timeouts and schedules."""
    wall_ms: int
    """The clock for times written to records or compared with them."""


class StateRecord(NamedTuple):
    """A record of an internal topic, as objects of the message classes in `coordinator.records`."""

    key: Message
    value: Message | None
    """None means a tombstone."""


AT_ONCE = 0
"""The high watermark for a reply that need not wait for the log, here or in Kafka."""

ALL_REPLICATED = 2**63 - 1
"""A high watermark above every record, for a log that is replayed or has only one replica."""


class Reply(NamedTuple):
    """The response to the request with this ticket."""

    ticket: int
    message: Message
    after: int | None = None
    """The high watermark for which the reply waits.

    None means the end of all records applied so far, including those of this decision.
    """


class TransactionalBatch(NamedTuple):
    """The producer of a TxnOffsetCommit, whose open transaction contains the records."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Markers(NamedTuple):
    """A transaction's end markers, to be written to these partitions; see `markers_written`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    partitions: tuple[TopicPartition, ...]


class Decision(NamedTuple):
    """The outcome of an event, carried out in the order of the fields."""

    records: tuple[StateRecord, ...] = ()
    replies: tuple[Reply, ...] = ()
    markers: tuple[Markers, ...] = ()
    batch: TransactionalBatch | None = None
    """None if the records are not transactional."""
    events: tuple[Event, ...] = ()
    """Events for the broker's log once the records are committed."""


NOTHING = Decision()


class Turn:
    """An event that the groups machine is processing, with its time and the decision so far.

    One event can answer many requests: for example, when the last member joins, all members get
    their responses.
    """

    __slots__ = ("config", "events", "now", "now_ms", "records", "replies", "timers")

    def __init__(self, config: GroupConfig, timers: Timers, now: Now) -> None:
        self.config = config
        self.timers = timers
        self.now = now
        self.now_ms = now.monotonic_ms
        self.records: list[StateRecord] = []
        self.replies: list[Reply] = []
        self.events: list[Event] = []

    def reply(self, ticket: int, message: Message, after: int | None = None) -> None:
        self.replies.append(Reply(ticket, message, after))

    def decision(self) -> Decision:
        # The many timers with nothing left to do share this value.
        if not (self.records or self.replies or self.events):
            return NOTHING
        return Decision(
            records=tuple(self.records),
            replies=tuple(self.replies),
            events=tuple(self.events),
        )
