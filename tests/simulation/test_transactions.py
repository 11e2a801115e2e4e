"""Transactions on coordinators that move, as stories; each loss is seen when its guard is off.

Torn and hanging transactions (KIP-890), zombies (KIP-98), and readers whose log was cut (KIP-320).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.cluster.layout import TRANSACTION_TOPIC
from barnabas.coordinator.transaction import Owner
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.types import TopicPartition
from simulation.coordinating import Coordinators
from simulation.machines import Machines
from simulation.rules import Violation
from simulation.run import what_is_missing
from simulation.sim_broker import SimBroker
from simulation.transaction_checks import Outcome, Tried
from simulation.transactional import TransactionalProducer
from simulation.wire import AskCoordinator, Produce, Produced, ReadAnswer
from simulation.workload import Consumer, Counts
from tests.simulation.planted import ForgetfulCoordinator, ProducerWithoutDoubts
from tests.simulation.stage import NAME, Stage

TOPIC_ID = b"\x01" * 16
STATES = TopicPartition(TRANSACTION_TOPIC, 0)
ID = "x"


class Play:
    """A stage with one transactional id."""

    def __init__(self, machines: Machines | None = None) -> None:
        self.stage = Stage(3, machines, min_isr=2, transactional=True)
        self.cluster = self.stage.cluster
        self.counts = Counts()
        self._producers = 0

    def producer(self) -> TransactionalProducer:
        """One that has taken the id."""
        self._producers += 1
        made = self.cluster.machines.transactional(
            self.cluster, -50 - self._producers, ID, self.counts
        )
        assert self.do(made, made.identify())
        return made

    def do(self, producer: TransactionalProducer, work: Coroutine[Any, Any, Any]) -> Any:
        """What comes of it."""
        outcome: list[Any] = []

        async def to_the_end() -> None:
            outcome.append(await work)

        self.cluster.world.start(producer.life, to_the_end())
        self.stage.until(lambda: bool(outcome))
        return outcome[0]

    def begin(self, producer: TransactionalProducer, records: int = 1) -> Tried:
        """A transaction with so many records."""
        tried = self.cluster.checks.transactions.begin(ID)
        for _ in range(records):
            assert self.do(producer, producer.send(tried, NAME))
        return tried

    def end(self, producer: TransactionalProducer, tried: Tried, *, is_commit: bool = True) -> None:
        self.do(producer, producer.end(tried, is_commit=is_commit))

    @property
    def coordinator(self) -> SimBroker:
        stored = self.cluster.checks.history(STATES).stored
        assert stored is not None
        return self.cluster.brokers[stored.leader]

    @property
    def leader(self) -> SimBroker:
        return self.cluster.brokers[self.stage.stored[0]]

    def settle(self) -> None:
        """The cluster is well, and readers of committed records have read to the end."""
        reader = Consumer(self.cluster, -100, is_committed=True)
        self.cluster.world.start(reader.life, reader.run())
        self.stage.until_well()
        self.stage.wait(1000)
        self.cluster.checks.transactions.settle()


def breaks(rule: str, story: Callable[[], object]) -> None:
    with pytest.raises(Violation) as broken:
        story()
    assert broken.value.rule == rule


# --- as it should be -----------------------------------------------------------------------------


def test_committed_ones_are_seen_and_aborted_ones_not() -> None:
    play = Play()
    producer = play.producer()
    outcomes = []
    for is_commit in (True, False, True):
        tried = play.begin(producer, 2)
        play.end(producer, tried, is_commit=is_commit)
        outcomes.append(tried.outcome)
    assert outcomes == [Outcome.COMMITTED, Outcome.ABORTED, Outcome.COMMITTED]
    play.settle()
    assert play.cluster.checks.judged["transaction"] >= 6
    assert play.cluster.checks.judged["outcome"] > 5


def test_who_takes_the_id_fences_who_had_it() -> None:
    """KIP-98: what the first had open is aborted."""
    play = Play()
    first = play.producer()
    tried = play.begin(first)
    second = play.producer()
    play.end(first, tried)
    assert tried.outcome is Outcome.ABORTED
    assert first._owner is None
    play.end(second, play.begin(second))
    play.settle()


def test_one_that_its_producer_left_is_aborted_in_time() -> None:
    play = Play()
    tried = play.begin(play.producer())
    play.stage.until(lambda: what_is_missing(play.cluster) is not None)
    play.settle()
    assert tried.outcome is Outcome.OPEN


def the_coordinator_dies_when_it_has_decided(machines: Machines) -> Tried:
    """Its successor finds the decision in the log, and it is unknown which markers were written."""
    play = Play(machines)
    producer = play.producer()
    tried = play.begin(producer)
    coordinator = play.coordinator.broker_id
    assert play.leader.broker_id != coordinator
    # No marker gets away from here; the log of the coordinators is replicated still.
    play.cluster.network.cut(coordinator, play.leader.broker_id)
    play.end(producer, tried)
    play.cluster.network.reset(coordinator)
    play.cluster.kill(coordinator)
    play.stage.heal()
    play.stage.wait(3000)
    play.cluster.start(coordinator)
    play.settle()
    return tried


def test_the_next_coordinator_writes_the_markers() -> None:
    tried = the_coordinator_dies_when_it_has_decided(Machines())
    assert tried.outcome is Outcome.COMMITTED


def test_markers_that_are_not_written_are_missed() -> None:
    with pytest.raises(AssertionError, match="a transaction hangs"):
        the_coordinator_dies_when_it_has_decided(Machines(transactions=ForgetfulCoordinator))


# --- torn transactions ---------------------------------------------------------------------------


def an_end_arrives_late(machines: Machines) -> None:
    """That of a transaction whose end was asked for twice; the next one is half written."""
    play = Play(machines)
    producer = play.producer()
    owner, tried = producer._owner, play.begin(producer)
    assert owner is not None
    coordinator = play.coordinator.broker_id
    play.cluster.network.cut(coordinator, producer.number)
    play.cluster.world.at(2000, None, play.stage.heal)
    play.end(producer, tried)
    assert tried.outcome is Outcome.COMMITTED
    following = play.begin(producer)
    late = EndTxnRequest(transactional_id=ID, **owner._asdict(), committed=True)
    play.coordinator.receive(AskCoordinator(ID, late), lambda answer: None)
    play.stage.wait(500)
    play.do(producer, producer.send(following, NAME))
    play.end(producer, following, is_commit=False)
    play.settle()


def test_torn_transaction_a_late_end_does_not_end_the_next_one() -> None:
    """KIP-890"""
    an_end_arrives_late(Machines())


def test_torn_transaction_by_a_late_end_is_seen_without_its_guard() -> None:
    machines = Machines(transactional=ProducerWithoutDoubts)
    breaks("transaction", lambda: an_end_arrives_late(machines))


def a_record_arrives_late(machines: Machines) -> int:
    """Its producer has given it up and aborted; the next transaction writes there as well."""
    play = Play(machines)
    producer = play.producer()
    owner, leader = producer._owner, play.leader
    assert owner is not None
    tried = play.cluster.checks.transactions.begin(ID)
    assert play.do(producer, producer.add(NAME))
    play.cluster.network.cut(producer.number, leader.broker_id)
    late = _late(play, tried, owner)
    play.stage.wait(200)
    play.cluster.network.reset(leader.broker_id)
    producer._is_in_doubt = True
    play.stage.heal()
    play.end(producer, tried, is_commit=False)
    play.stage.until_well()
    following = play.cluster.checks.transactions.begin(ID)
    assert play.do(producer, producer.add(NAME))
    answers: list[Produced] = []
    leader.receive(late, answers.append)
    play.stage.until(lambda: bool(answers))
    play.do(producer, producer.send(following, NAME))
    play.end(producer, following)
    play.settle()
    return answers[0].error_code


def _late(play: Play, tried: Tried, owner: Owner) -> Produce:
    value = 1000
    play.cluster.checks.topics.sends(value, TOPIC_ID)
    play.cluster.checks.transactions.sends(tried, value, NAME, TOPIC_ID)
    return Produce(NAME, TOPIC_ID, -1, owner.producer_id, 0, value, owner.producer_epoch, ID)


def test_torn_transaction_a_late_record_is_not_in_the_next_one() -> None:
    """KIP-890, KIP-360"""
    assert a_record_arrives_late(Machines()) != 0


def test_torn_transaction_by_a_late_record_is_seen_without_its_guard() -> None:
    machines = Machines(transactional=ProducerWithoutDoubts)
    breaks("transaction", lambda: a_record_arrives_late(machines))


# --- hanging transactions ------------------------------------------------------------------------


def a_record_arrives_after_the_marker() -> Play:
    """Its transaction is over, and no other has begun: who would ever end it?"""
    play = Play()
    producer = play.producer()
    owner, tried = producer._owner, play.begin(producer)
    assert owner is not None
    play.end(producer, tried, is_commit=False)
    play.stage.until_well()
    late = _late(play, tried, owner)._replace(sequence=1)
    answers: list[Produced] = []
    play.leader.receive(late, answers.append)
    play.stage.until(lambda: bool(answers))
    play.stage.wait(6000)
    return play


def test_hanging_transaction_what_comes_after_the_marker_is_refused() -> None:
    """KIP-890"""
    play = a_record_arrives_after_the_marker()
    assert what_is_missing(play.cluster) is None
    play.settle()


def test_hanging_transaction_is_seen_without_its_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Coordinators, "is_open", lambda self, replica, request: True)
    play = a_record_arrives_after_the_marker()
    assert "a transaction hangs" in str(what_is_missing(play.cluster))


# --- offsets of readers --------------------------------------------------------------------------


class Reader(Consumer):
    """Remembers what it has read, in its order."""

    __slots__ = ("values",)

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.cluster, -100)
        self.values: list[int] = []

    def got(self, name: TopicPartition, topic_id: bytes, answer: ReadAnswer) -> None:
        self.values += [entry.value for entry in answer.entries]
        super().got(name, topic_id, answer)


def a_reader_is_ahead_of_a_log_that_was_cut() -> tuple[list[int], list[int]]:
    """What it has read after an unclean election, and what is there."""
    stage = Stage(2, unclean=True)
    reader = Reader(stage)
    stage.cluster.world.start(reader.life, reader.run())
    stage.write(count=2)
    stage.part(1, 2)
    stage.write(acks=1, count=5)
    stage.until(lambda: len(reader.values) == 7)
    stage.cluster.network.cut(reader.number, 2)
    stage.cluster.kill(1)
    stage.until_led_by(2)
    stage.write(acks=1, count=9)
    stage.heal()
    stage.cluster.start(1)
    stage.until_well()
    stage.wait(1000)
    return reader.values, stage.values(2)


def test_offset_reset_a_reader_goes_back_to_where_the_logs_part() -> None:
    """KIP-320: what the new leader wrote there is not skipped."""
    read, there = a_reader_is_ahead_of_a_log_that_was_cut()
    assert there == [1, 2, *range(8, 17)]
    assert read[7:] == there[2:]


def test_offset_reset_is_seen_without_its_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    async def trusting(self: Consumer, *values: object) -> bool:
        return True

    monkeypatch.setattr(Consumer, "validate", trusting)
    read, there = a_reader_is_ahead_of_a_log_that_was_cut()
    assert set(there) - set(read) == {8, 9, 10, 11, 12}
