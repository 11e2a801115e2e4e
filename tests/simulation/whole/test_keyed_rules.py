"""The rules of topics that do not keep everything: they hold for what is true, and for no more."""

from __future__ import annotations

from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition
from simulation.whole.environment import FLEETING, KEYED
from simulation.whole.history import FAIL, OK, UNKNOWN, Era, History, Writing
from simulation.whole.keyed_rules import Row, judge_namesake, judge_table, same_records
from simulation.whole.rules import Tally
from simulation.whole.truth import Truth
from tests.simulation.whole.hand_made import Log, Still

KEYED_0, FLEETING_0 = TopicPartition(KEYED, 0), TopicPartition(FLEETING, 0)


class Table:
    """What was written to a compacted partition."""

    def __init__(self) -> None:
        self.history = History(Still())
        self._number = 0

    def writes(self, offset: int, *, key: bytes = b"k", tombstone: bool = False) -> Writing:
        """A record that was acknowledged there; -1: its outcome is unknown."""
        self._number += 1
        writing = Writing("w.1", 0, self._number, KEYED_0, -1)
        writing.key, writing.is_tombstone = key, tombstone
        self.history.writes(writing, 0)
        writing.outcome = UNKNOWN if offset < 0 else OK
        writing.offset = offset
        return writing

    def in_transaction(self, offset: int, outcome: str, *, tombstone: bool = False) -> Writing:
        """The same, in one that ended so."""
        writing = self.writes(offset, tombstone=tombstone)
        transaction = self.history.begins("w.1", self._number)
        transaction.writings.append(writing)
        transaction.outcome = outcome
        return writing

    def holds(self, *rows: Row, is_committed: bool = True) -> bool:
        tally = Tally()
        judge_table(tally, self.history, KEYED_0, rows, is_committed=is_committed)
        assert tally.judged["compacted"]
        return not tally.broken


def row(writing: Writing, offset: int | None = None) -> Row:
    """As it is read."""
    value = None if writing.is_tombstone else writing.id + b"|..."
    return Row(writing.offset if offset is None else offset, writing.key or b"", value)


def test_the_last_value_of_a_key_stays_and_older_ones_may_go() -> None:
    table = Table()
    first, last = table.writes(3), table.writes(7)
    assert table.holds(row(last))
    assert table.holds(row(first), row(last))
    assert not table.holds(row(first))
    assert not table.holds()


def test_a_record_stays_where_it_was_and_in_order() -> None:
    table = Table()
    first, last = table.writes(3), table.writes(7)
    assert not table.holds(row(last, 6))
    assert not table.holds(row(last), row(first))
    assert not table.holds(row(last), Row(9, b"k", b"stranger|"))


def test_a_tombstone_may_go_with_its_key_but_gives_nothing_back() -> None:
    table = Table()
    first, tombstone = table.writes(3), table.writes(7, tombstone=True)
    assert table.holds(row(tombstone))
    assert table.holds()
    assert not table.holds(row(first))


def test_what_is_in_doubt_may_have_come_behind_what_is_certain() -> None:
    table = Table()
    certain, doubtful = table.writes(3), table.writes(-1)
    assert table.holds(row(certain))
    assert table.holds(row(doubtful, 5))
    assert not table.holds()
    table.writes(-1, tombstone=True)
    assert table.holds()


def test_what_was_aborted_hides_nothing_and_no_reader_of_committed_records_reads_it() -> None:
    table = Table()
    certain, aborted = table.writes(3), table.in_transaction(7, FAIL)
    assert table.holds(row(certain))
    assert not table.holds(row(certain), row(aborted))
    assert table.holds(row(certain), row(aborted), is_committed=False)
    assert table.holds(row(certain), is_committed=False)
    assert not table.holds(row(aborted))


def test_what_was_committed_is_there() -> None:
    table = Table()
    certain, committed = table.writes(3), table.in_transaction(7, OK)
    assert table.holds(row(committed))
    assert not table.holds(row(certain))


def namesake(*written: tuple[int, bool], is_certain: bool = True) -> list[str]:
    """What is wrong with a topic of which the second era is the last: for each record in which era
    it was acknowledged, and whether it is there."""
    history, log, tally = History(Still()), Log(), Tally()
    history.eras += [Era(1, True), Era(2, is_certain)]
    for number, (era, is_there) in enumerate(written):
        writing = Writing(f"remaker-0.{era}", 0, number, FLEETING_0, -1)
        value = history.writes(writing, 0)
        writing.outcome, writing.attempts = OK, 1
        builder = BatchBuilder()
        builder.append(0, None, value)
        if is_there:
            log.add(builder.build())
    judge_namesake(tally, history, Truth(bytes(log.data), 0, log.end))
    assert tally.judged["namesake"] == len(written)
    return tally.broken


def test_a_topic_that_is_made_again_has_its_own_records_and_no_others() -> None:
    assert namesake((1, False), (2, True)) == []
    assert "is of another topic's past" in namesake((1, True), (2, True))[0]
    assert "is lost" in namesake((2, False))[0]
    assert namesake((2, False), is_certain=False) == []


def test_replicas_that_compact_for_themselves_have_the_same_where_both_have_something() -> None:
    def batch(value: bytes) -> bytes:
        builder = BatchBuilder()
        builder.append(0, b"k", value)
        return builder.build()

    whole, sparse, other = Log(), Log(), Log()
    for value in (b"one", b"two"):
        whole.add(batch(value))
        other.add(batch(value + b"!"))
    sparse.end = 1
    sparse.add(batch(b"two"))
    assert same_records(bytes(whole.data), bytes(sparse.data))
    assert not same_records(bytes(whole.data), bytes(other.data))
