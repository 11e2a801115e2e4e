"""A history and the logs to it, written by hand: true in everything, until a test changes it."""

from __future__ import annotations

from barnabas.records.batch import assign_in_place
from barnabas.records.control_records import ABORT, COMMIT, Marker, build_marker
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition
from simulation.whole.environment import ATOMIC, COPIERS, COPIES, MEMBERS, ONE, SURE
from simulation.whole.history import (
    FAIL,
    OK,
    UNKNOWN,
    Commit,
    End,
    History,
    Owned,
    Read,
    Stretch,
    Transaction,
    Writing,
)
from simulation.whole.rules import Allowed, Evidence, Tally
from simulation.whole.truth import Truth
from simulation.whole.verdict import judge_evidence

SURE_0, ONE_0, ATOMIC_0, COPIES_0 = (
    TopicPartition(topic, 0) for topic in (SURE, ONE, ATOMIC, COPIES)
)


class Still:
    """A clock for those who do not care."""

    def wall_ms(self) -> int:
        return 0

    monotonic_ms = wall_ms


class Log:
    """A partition's bytes."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.end = 0

    def add(self, batch: bytes, records: int = 1, epoch: int = 0) -> int:
        """The offset that it gets."""
        placed = bytearray(batch)
        assign_in_place(placed, 0, self.end, epoch)
        self.data += placed
        self.end += records
        return self.end - records


class HandMade:
    def __init__(self) -> None:
        self.history = History(Still())
        self.logs = {name: Log() for name in (SURE_0, ONE_0, ATOMIC_0, COPIES_0)}
        self.committed: dict[str, dict[TopicPartition, int]] = {MEMBERS: {}, COPIERS: {}}
        self.leader_epoch = 0
        self.allowed = Allowed()

    def evidence(self) -> Evidence:
        truths = {name: Truth(bytes(log.data), 0, log.end) for name, log in self.logs.items()}
        epochs = dict.fromkeys(truths, self.leader_epoch)
        return Evidence(self.history, truths, epochs, self.committed, self.allowed)

    def judge(self) -> Tally:
        tally = Tally()
        judge_evidence(tally, self.evidence())
        return tally

    # ---- writing ----

    def writes(self, writing: Writing, source: bytes = b"") -> bytes:
        writing.source = source
        return self.history.writes(writing, 0) + source

    def stores(self, name: TopicPartition, value: bytes, producer: int = -1) -> int:
        """Of a transaction, if a producer is named."""
        batch = BatchBuilder(producer_id=producer, is_transactional=producer >= 0)
        batch.append(0, None, value)
        return self.logs[name].add(batch.build())

    def ends(self, name: TopicPartition, producer: int, kind: int) -> None:
        self.logs[name].add(build_marker(Marker(0, 0, kind, 0), producer, 0))

    def sends(self, name: TopicPartition, writer: str, number: int, acks: int = -1) -> Writing:
        """A record that is stored and acknowledged."""
        writing = Writing(writer, 0, number, name, acks)
        value = self.writes(writing)
        self.history.acknowledged(writing, self.stores(name, value))
        return writing

    def transacts(self, number: int, outcome: str, producer: int = 7) -> Transaction:
        """Two records in `ATOMIC_0`, and their end."""
        transaction = self.history.begins("t.1", number)
        for each in (1, 2):
            writing = Writing("t.1", number, each, ATOMIC_0, -1)
            transaction.writings.append(writing)
            offset = self.stores(ATOMIC_0, self.writes(writing), producer)
            self.history.acknowledged(writing, offset)
        self.ends(ATOMIC_0, producer, COMMIT if outcome == OK else ABORT)
        self.history.ends_with(transaction, outcome)
        return transaction

    def copies(self, number: int, source: Writing) -> Transaction:
        """One record, in a transaction of its own."""
        transaction = self.history.begins("c.1", number)
        writing = Writing("c.1", number, 1, COPIES_0, -1)
        transaction.writings.append(writing)
        value = self.writes(writing, source.id)
        self.history.acknowledged(writing, self.stores(COPIES_0, value, 9))
        self.ends(COPIES_0, 9, COMMIT)
        self.history.ends_with(transaction, OK)
        return transaction

    # ---- reading ----

    def stretch(self, reader: str, group: str = "", *, is_committed: bool = False) -> Stretch:
        return self.history.stretch(reader, group, is_committed=is_committed)

    def gives(self, stretch: Stretch, name: TopicPartition, *offsets: int) -> None:
        """To a reader, what stands at these offsets of the log."""
        log = self.logs[name]
        there = dict(Truth(bytes(log.data), 0, log.end).records)
        for offset in offsets:
            self.history.reads(stretch, name, Read(offset, there[offset]))


def true_story() -> HandMade:
    """Something for every rule that looks at evidence, and nothing wrong."""
    made = HandMade()
    history = made.history
    first = [made.sends(SURE_0, "s.1", number) for number in (1, 2, 3, 4)]
    made.sends(ONE_0, "o.1", 1, acks=1)
    refused = Writing("s.1", 0, 5, SURE_0, -1)
    made.writes(refused)
    history.failed(refused, ValueError("too large"))
    made.transacts(1, OK)
    made.transacts(2, FAIL)
    made.transacts(3, UNKNOWN)
    for number, writing in enumerate(first, 1):
        made.copies(number, writing)
    everything = made.stretch("reader")
    everything.goes_to(SURE_0, 0)
    made.gives(everything, SURE_0, 0, 1, 2, 3)
    made.gives(everything, ATOMIC_0, 0, 1, 3, 4)
    whole = made.stretch("careful reader", is_committed=True)
    whole.goes_to(ATOMIC_0, 0)
    made.gives(whole, ATOMIC_0, 0, 1)
    for offset in (2, 4):
        history.sees_end(End("reader", False, SURE_0, offset))
    for group in (MEMBERS, COPIERS):
        made.gives(made.stretch("m.1", group), SURE_0, 0, 1)
        made.gives(made.stretch("n.1", group), SURE_0, 2, 3)
        history.owns(Owned(group, 1, "m.1", SURE_0, has_offsets=False))
        history.owns(Owned(group, 2, "n.1", SURE_0, has_offsets=True))
        made.committed[group][SURE_0] = 4
    history.commits_offset(Commit(MEMBERS, 1, "m.1", SURE_0, 2))
    history.commits_offset(Commit(MEMBERS, 2, "n.1", SURE_0, 4))
    return made
