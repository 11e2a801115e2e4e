"""Defines a coordinator machine's decision for an event, and how it is built for a group.

The machine's driver appends the records in one batch. Once they are in the log, the driver applies
them in order. (A very large number of tombstones needs several batches, so an early batch may
already be in the log when a later one is rejected.) Once the high watermark has passed the records,
the driver sends the replies that depend on them (`Reply.after`) and starts writing the markers. If
the append is rejected, the decision has no effect, and the driver sends the error to every request
that the decision would have answered. A request that is not answered by the decision for its own
event stays parked in the machine, and is answered by a later decision.
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
    """The time of an event, read from both of the broker's clocks (`clock`)."""

    monotonic_ms: int
    """The clock for sessions, timeouts and schedules."""
    wall_ms: int
    """The clock for times that are written to records or compared with times in records."""


class StateRecord(NamedTuple):
    """A record of an internal topic.

    Its key and value are messages defined in `coordinator.records`.
    """

    key: Message
    value: Message | None
    """None means a tombstone."""


AT_ONCE = 0
"""The high watermark for a reply that, as in Kafka, does not have to wait for the log."""

ALL_REPLICATED = 2**63 - 1
"""A high watermark above every record, used when a log is replayed or has only one replica."""


class Reply(NamedTuple):
    """The response to the request with this ticket."""

    ticket: int
    message: Message
    after: int | None = None
    """The high watermark that the reply waits for.

    If None, the reply waits for all records applied so far, including the records of this decision.
    """


class TransactionalBatch(NamedTuple):
    """The producer that sent a TxnOffsetCommit.

    The records are appended as part of its open transaction.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int


class Markers(NamedTuple):
    """The end markers of a transaction, to write to these partitions; see `markers_written`."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    partitions: tuple[TopicPartition, ...]


class Decision(NamedTuple):
    """The outcome of an event. The fields are carried out in order."""

    records: tuple[StateRecord, ...] = ()
    replies: tuple[Reply, ...] = ()
    markers: tuple[Markers, ...] = ()
    batch: TransactionalBatch | None = None
    """None if the records are not transactional."""
    events: tuple[Event, ...] = ()
    """Events to write to the broker's log once the records are committed."""


NOTHING = Decision()


class Turn:
    """An event that the groups machine is processing, with the time and the decision built so far.

    A single event can answer many requests: for example, when the last member joins, every member
    gets its response.
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
        # Most timers have nothing left to do, so they share this value.
        if not (self.records or self.replies or self.events):
            return NOTHING
        return Decision(
            records=tuple(self.records),
            replies=tuple(self.replies),
            events=tuple(self.events),
        )
