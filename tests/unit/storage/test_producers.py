"""Producer sequences: duplicates, gaps, fencing, wrap-around (PR-6, KIP-98)."""

from __future__ import annotations

import pytest

from barnabas.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    UnknownProducerId,
)
from barnabas.records.batch import TRANSACTIONAL
from barnabas.records.control_records import ABORT, Marker
from barnabas.storage.producers import Producers
from tests.kit.storage.headers import header

LAST = 2**31 - 1


class Partition:
    """Producers in front of a log that takes whatever they let pass."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.end = 0

    def send(self, sequence: int, count: int = 1, *, epoch: int = 0, attributes: int = 0) -> int:
        """The base offset that is answered."""
        sent = header(sequence, count, epoch=epoch, attributes=attributes)
        before = self.producers.check(sent)
        if before is not None:
            return before.base_offset
        base_offset = self.end
        self.producers.apply(sent, base_offset, timestamp=5)
        self.end += count
        return base_offset


def test_pr_6_the_last_five_batches_are_answered_again() -> None:
    partition = Partition()
    sent = [(0, 2), (2, 1), (3, 4), (7, 1), (8, 1), (9, 3)]
    offsets = [partition.send(*batch) for batch in sent]
    assert offsets == [0, 2, 3, 7, 8, 9]
    assert [partition.send(*batch) for batch in sent[1:]] == offsets[1:]
    assert partition.end == 12
    with pytest.raises(OutOfOrderSequenceNumber):
        partition.send(*sent[0])


def test_pr_6_gaps_are_refused_and_change_nothing() -> None:
    partition = Partition()
    partition.send(0, 3)
    for sequence in (4, 1, 2, LAST):
        with pytest.raises(OutOfOrderSequenceNumber, match=f"sequence {sequence} "):
            partition.send(sequence)
    assert partition.send(3) == 3


def test_a_batch_that_overlaps_is_no_repetition() -> None:
    partition = Partition()
    partition.send(0, 3)
    with pytest.raises(OutOfOrderSequenceNumber):
        partition.send(0, 2)
    with pytest.raises(OutOfOrderSequenceNumber):
        partition.send(0, 4)


def test_pr_6_an_old_epoch_is_fenced() -> None:
    partition = Partition()
    partition.send(0, epoch=1)
    with pytest.raises(InvalidProducerEpoch, match="epoch 1"):
        partition.send(1, epoch=0)
    assert partition.send(1, epoch=1) == 1


def test_a_new_epoch_begins_with_sequence_0() -> None:
    partition = Partition()
    partition.send(0, 5)
    with pytest.raises(OutOfOrderSequenceNumber):
        partition.send(5, epoch=1)
    assert partition.send(0, epoch=1) == 5
    assert partition.send(0, epoch=1) == 5  # a repetition, within the new epoch
    assert partition.send(1, epoch=1) == 6


def test_a_producer_that_is_not_known_may_begin_anywhere() -> None:
    """KIP-360: retention may have removed all that it wrote."""
    partition = Partition()
    assert partition.send(17) == 0
    assert partition.send(18) == 1


@pytest.mark.parametrize("count", [1, 2, 5])
def test_sequences_wrap_to_0(count: int) -> None:
    partition = Partition()
    partition.send(LAST - 2, 3)
    assert partition.send(0, count) == 3
    assert partition.send(LAST - 2, 3) == 0


def test_a_batch_may_lie_across_the_wrap() -> None:
    partition = Partition()
    partition.send(LAST - 1, 4)  # LAST-1, LAST, 0, 1
    assert partition.send(LAST - 1, 4) == 0
    assert partition.send(2) == 4


def test_dl_1_what_repeats_a_batch_of_an_ended_transaction_is_no_success() -> None:
    """librdkafka numbers the first batch of a transaction like one that it had to send again when
    it aborted the last one: to answer "duplicate" would lose the new records (decision 20)."""
    partition = Partition()
    transactional = {"attributes": TRANSACTIONAL}
    assert partition.send(0, 3, **transactional) == 0
    assert partition.send(0, 3, **transactional) == 0, "within its transaction it is a repetition"
    partition.producers.apply_marker(4000, 0, Marker(3, 99, ABORT, 7))
    partition.end = 4
    with pytest.raises(UnknownProducerId, match="repeated sequence 0 of epoch 0"):
        partition.send(0, 3, **transactional)
    assert partition.send(3, 2, **transactional) == 4
    with pytest.raises(UnknownProducerId):
        partition.send(0, 3, **transactional)
    assert partition.send(3, 2, **transactional) == 4


def test_a_marker_keeps_sequences_and_a_bumped_epoch_resets_them() -> None:
    partition = Partition()
    partition.send(0, 3)
    partition.producers.apply_marker(4000, 0, Marker(3, 99, ABORT, 7))
    producer = partition.producers.get(4000)
    assert producer is not None
    assert (producer.last_sequence, producer.timestamp, producer.coordinator_epoch) == (2, 99, 7)
    assert partition.send(3) == 3
    partition.producers.apply_marker(4000, 1, Marker(4, 100, ABORT, 7))
    producer = partition.producers.get(4000)
    assert producer is not None
    assert producer.last_sequence == -1
    assert partition.send(0, epoch=1) == 4


def test_a_transaction_is_open_until_its_marker() -> None:
    producers = Producers()
    producers.apply(header(0, attributes=0x10), 40, 5)
    producers.apply(header(1, attributes=0x10), 41, 5)
    producer = producers.get(4000)
    assert producer is not None and producer.transaction_offset == 40
    producers.expire(before_ms=10**15)
    assert len(producers) == 1
    producers.apply_marker(4000, 0, Marker(42, 6, ABORT, 0))
    producer = producers.get(4000)
    assert producer is not None
    assert producer.transaction_offset == -1


def test_the_idle_are_forgotten_by_the_time_of_their_records() -> None:
    producers = Producers()
    producers.apply(header(0), 0, timestamp=1000)
    producers.expire(before_ms=999)
    assert len(producers) == 1
    producers.expire(before_ms=1000)
    assert len(producers) == 0


def test_a_batch_outside_of_the_transaction_that_is_open_is_refused() -> None:
    """PR-7: else readers of committed records would wait for it with the transaction."""
    producers = Producers()
    producers.apply(header(0, attributes=TRANSACTIONAL), 0, 0)
    with pytest.raises(InvalidTxnState):
        producers.check(header(1))
    assert producers.check(header(1, attributes=TRANSACTIONAL)) is None
