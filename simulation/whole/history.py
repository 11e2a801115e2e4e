"""Records what clients did and which answers they received: the evidence, and the story for its
readers.

Every record, transaction, reading and commit is written down when it begins and again when its
outcome is known, with the time. Invariant: an outcome is `OK` or `FAIL` only if nothing else can be
true; if there was no answer, or an answer that leaves a doubt, it stays `UNKNOWN`.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.types import TopicPartition
from simulation.world import Line

OK, FAIL, UNKNOWN, OPEN = "ok", "fail", "unknown", "open"

_PADDING = b"|"


class Writing:
    """A record being written; `number` counts its writer's records, in order."""

    __slots__ = (
        "acks",
        "at_ms",
        "attempts",
        "is_tombstone",
        "key",
        "name",
        "number",
        "offset",
        "outcome",
        "source",
        "transaction",
        "writer",
    )

    def __init__(
        self, writer: str, transaction: int, number: int, name: TopicPartition, acks: int
    ) -> None:
        self.writer = writer
        self.transaction = transaction  # 0: in none
        self.number = number
        self.name = name
        self.acks = acks  # -1: all
        self.outcome = UNKNOWN
        self.offset = -1  # as acknowledged
        self.source = b""  # the id of the record of which it is a copy
        self.key: bytes | None = None
        self.is_tombstone = False
        self.at_ms = 0  # when it was written
        self.attempts = 0  # attempts to send its batch, once its outcome is known

    @property
    def id(self) -> bytes:
        return f"{self.writer}:{self.transaction}:{self.number}".encode()

    def __str__(self) -> str:
        return self.id.decode()


class Transaction:
    """A producer's transaction; it is `OPEN` until a commit is requested.

    `OK`: committed; `FAIL`: not committed, nor ever to be; `UNKNOWN`: a commit has been requested.
    """

    __slots__ = ("number", "outcome", "writer", "writings")

    def __init__(self, writer: str, number: int) -> None:
        self.writer = writer
        self.number = number
        self.outcome = OPEN
        self.writings: list[Writing] = []

    @property
    def is_committed(self) -> bool:
        return self.outcome == OK

    def __str__(self) -> str:
        return f"{self.writer}:{self.number}"


class Read(NamedTuple):
    offset: int
    value: bytes


class Run:
    """The records read from one partition without a seek in between."""

    __slots__ = ("reads", "start")

    def __init__(self, start: int) -> None:
        self.start = start  # the first position; -1: not known
        self.reads: list[Read] = []


class Stretch:
    """The records that a consumer read between one assignment of partitions and the next."""

    __slots__ = ("group", "is_committed", "reader", "runs")

    def __init__(self, reader: str, group: str, *, is_committed: bool) -> None:
        self.reader = reader
        self.group = group  # "": reads for itself
        self.is_committed = is_committed
        self.runs: dict[TopicPartition, list[Run]] = {}

    def goes_to(self, name: TopicPartition, position: int) -> None:
        """Record that the consumer must read on from this position."""
        self.runs.setdefault(name, []).append(Run(position))

    def positions(self) -> dict[TopicPartition, int]:
        """Return the position after the last record of each partition from which something was
        read."""
        return {
            name: runs[-1].reads[-1].offset + 1
            for name, runs in self.runs.items()
            if runs[-1].reads
        }


class Commit(NamedTuple):
    """A committed offset of a group that was acknowledged to one of its members."""

    group: str
    generation: int
    member: str
    name: TopicPartition
    offset: int


class Owned(NamedTuple):
    """The assignment of a partition to a member."""

    group: str
    generation: int
    member: str
    name: TopicPartition
    has_offsets: bool
    """Whether the group has committed any offsets.

    Until then it may be forgotten while it is empty, and count its generations from 1 again.
    """
    at_ms: int = 0


class Attendance:
    """The time in which a consumer takes part in a group, in milliseconds."""

    __slots__ = ("began_ms", "closed_ms", "group", "who")

    def __init__(self, group: str, who: str, began_ms: int) -> None:
        self.group = group
        self.who = who
        self.began_ms = began_ms
        self.closed_ms: int | None = None


class End(NamedTuple):
    """The latest offset that a client received."""

    client: str
    is_committed: bool
    name: TopicPartition
    offset: int
    life: int = 1  # of the client: the next life knows nothing of it


class Era(NamedTuple):
    """The time from a topic's creation until its deletion."""

    number: int
    is_certain: bool
    """Whether no earlier deletion request can still be under way."""


class History:
    """The history of one run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.lines: list[Line] = []
        self.writings: dict[bytes, Writing] = {}  # by id, in the order of the calls
        self.transactions: list[Transaction] = []
        self.stretches: list[Stretch] = []
        self.commits: list[Commit] = []
        self.owned: list[Owned] = []
        self.groups_with_offsets: set[str] = set()
        self.attendances: list[Attendance] = []
        self.readers_by_member: dict[str, str] = {}
        """The readers by the member ids that they were given."""
        self.ends: list[End] = []
        self.doubtful: dict[str, str] = {}
        """The writers that have started over because they did not know what the brokers had
        stored, and why."""
        self.refused_reads: list[str] = []
        """Refused reads at positions that no reader has any longer."""
        self.surprises: list[str] = []  # errors that no client should ever raise
        self.unfinished: list[str] = []  # clients that did not end
        self.deleted_to: dict[TopicPartition, int] = {}
        """The offsets below which an operator has deleted records."""
        self.eras: list[Era] = []
        """The eras of the topic that is deleted and recreated, in order."""

    def tell(self, text: str, *values: object) -> None:
        """Add a line.

        `text` is a format string for the values; it is filled in only when the line is read.
        """
        self.lines.append(Line(self._clock.wall_ms(), text, values))

    # ---- writing ----

    def writes(self, writing: Writing, size_bytes: int) -> bytes:
        """Record a writing; returns the record's value, which names it and is about this long."""
        self.writings[writing.id] = writing
        self.tell("{} writes {} to {}", writing.writer, writing, writing.name)
        writing.at_ms = self.lines[-1].at_ms
        return (writing.id + _PADDING).ljust(size_bytes, b".")

    def acknowledged(self, writing: Writing, offset: int) -> None:
        writing.outcome, writing.offset = OK, offset
        self.tell("{} is acknowledged at {}", writing, offset)

    def failed(self, writing: Writing, error: Exception) -> None:
        """Record that the record is certainly not stored, and never will be."""
        writing.outcome = FAIL
        self.tell("{} is refused: {}", writing, error)

    def in_doubt(self, writing: Writing, error: Exception) -> None:
        """Record that it may or may not be stored; its writer does not know its own state
        either."""
        writing.outcome = UNKNOWN
        self.doubtful.setdefault(writing.writer, str(error))
        self.tell("the outcome of {} is unknown: {}", writing, error)

    # ---- transactions ----

    def begins(self, writer: str, number: int) -> Transaction:
        transaction = Transaction(writer, number)
        self.transactions.append(transaction)
        self.tell("{} begins transaction {}", writer, number)
        return transaction

    def ends_with(self, transaction: Transaction, outcome: str, why: object = "") -> None:
        transaction.outcome = outcome
        words = {
            OK: "committed",
            FAIL: "aborted",
            UNKNOWN: "to be committed, and may be or not",
        }
        self.tell("transaction {} is {} {}", transaction, words[outcome], why)

    # ---- reading ----

    def stretch(self, reader: str, group: str = "", *, is_committed: bool) -> Stretch:
        stretch = Stretch(reader, group, is_committed=is_committed)
        self.stretches.append(stretch)
        self.tell("{} begins to read", reader)
        return stretch

    def reads(self, stretch: Stretch, name: TopicPartition, read: Read) -> None:
        runs = stretch.runs.setdefault(name, [])
        if not runs:
            runs.append(Run(-1))
        runs[-1].reads.append(read)
        self.tell("{} reads {} at {} of {}", stretch.reader, id_of(read.value), read.offset, name)

    def refuses_read(self, reader: str, error: Exception) -> None:
        self.refused_reads.append(f"{reader}: {error}")
        self.tell("{} cannot go on: {}", reader, error)

    def sees_end(self, end: End) -> None:
        self.ends.append(end)
        self.tell("{} sees that {} ends at {}", end.client, end.name, end.offset)

    # ---- groups ----

    def attends(self, group: str, who: str) -> Attendance:
        attendance = Attendance(group, who, self._clock.wall_ms())
        self.attendances.append(attendance)
        return attendance

    def leaves(self, attendance: Attendance) -> None:
        attendance.closed_ms = self._clock.wall_ms()

    def owns(self, owned: Owned) -> None:
        self.owned.append(owned)
        self.tell(
            "{} gets {} in generation {} of {}",
            owned.member,
            owned.name,
            owned.generation,
            owned.group,
        )

    def commits_offset(self, commit: Commit) -> None:
        self.commits.append(commit)
        self.groups_with_offsets.add(commit.group)
        self.tell(
            "{} has committed {} at {} in generation {} of {}",
            commit.member,
            commit.name,
            commit.offset,
            commit.generation,
            commit.group,
        )

    # ---- what should not be ----

    def surprise(self, who: str, error: BaseException) -> None:
        self.surprises.append(f"{who}: {error!r}")
        self.tell("{} meets the unexpected: {}", who, repr(error))


def id_of(value: bytes | None) -> bytes:
    """Return the id of a record with this value; a copy's own id is followed by the id of the
    copied record."""
    return (value or b"").partition(_PADDING)[0]
