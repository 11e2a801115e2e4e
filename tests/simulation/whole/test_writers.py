"""What a writer notes of a record that failed: `FAIL` only where nothing else can be true of it."""

from __future__ import annotations

from barnabas.client.config import ProducerConfig
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import CheckedRecord
from barnabas.client.producer.delivery import Delivery
from barnabas.errors import (
    BarnabasError,
    NotEnoughReplicasAfterAppend,
    OutOfOrderSequenceNumber,
    ProducerFenced,
)
from barnabas.types import TopicPartition
from simulation.whole.history import FAIL, UNKNOWN, History, Writing
from simulation.whole.writers import settled
from tests.simulation.whole.hand_made import Still

NAME = TopicPartition("t", 0)


def outcome(*attempts: BarnabasError) -> str:
    """Of a record that was sent and failed with these, and then its transaction is fenced."""
    accumulator = Accumulator(ProducerConfig(transactional_id="t"))
    accumulator.identify(9, 0)
    record = CheckedRecord("t", b"x", None, None, None, (), 100)
    batch, index = accumulator.append(NAME, record, 0, 0)
    writing, history = Writing("w", 1, 1, NAME, -1), History(Still())
    Delivery(batch, index, 0).add_done_callback(lambda done: settled(history, writing, done))
    for error in attempts:
        (queue,) = accumulator.ready(0).queues
        accumulator.fail_attempt(accumulator.take(queue), error, 0)
    accumulator.fail_waiting(ProducerFenced("another partition has said so"))
    return writing.outcome


def test_what_was_never_sent_has_failed_for_certain() -> None:
    assert outcome() == FAIL


def test_what_was_appended_before_its_producer_was_fenced_is_in_doubt() -> None:
    """The error that it ends with is not about it."""
    assert outcome(NotEnoughReplicasAfterAppend()) == UNKNOWN


def test_what_a_broker_has_refused_has_failed_for_certain() -> None:
    assert outcome(OutOfOrderSequenceNumber()) == FAIL
