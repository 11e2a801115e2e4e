"""KIP-126: a batch that is too large for its topic goes on in parts, in its place (PR-5, PR-6)."""

from __future__ import annotations

import pytest

from barnabas.client.errors import ConnectionLost
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.batch_delivery import BatchDelivery
from barnabas.client.producer.delivery import Delivery
from barnabas.errors import MessageTooLarge, OutOfOrderSequenceNumber
from barnabas.records.batch import read_header
from barnabas.records.record import iterate_records
from tests.kit.accumulators import T0, identified, record

TOO_LARGE = MessageTooLarge("too large")


def append(accumulator: Accumulator, *texts: str) -> list[Delivery]:
    return [Delivery(*accumulator.append(T0, record(text), 0, 7), 7) for text in texts]


def take(accumulator: Accumulator) -> ProducerBatch:
    (queue,) = accumulator.ready(0).queues
    batch = accumulator.take(queue)
    batch.encode()
    return batch


def sent(batch: ProducerBatch) -> tuple[int, list[str]]:
    """Its first sequence and its values, as a broker reads them."""
    encoded = batch.encode()
    found = [(each.value or b"").decode() for each in iterate_records(encoded)]
    return read_header(encoded).base_sequence, found


def many(count: int = 8, **options: int | bool | str) -> tuple[Accumulator, list[Delivery]]:
    accumulator = identified(batch_size=16_384, **options)
    return accumulator, append(accumulator, *(f"{number:04d}" for number in range(count)))


def store(accumulator: Accumulator, most: int) -> list[list[str]]:
    """What a broker stores, in order, that takes batches of at most so many records."""
    stored: list[list[str]] = []
    expected = offset = 0
    while accumulator.unfinished_batches:
        batch = take(accumulator)
        sequence, values = sent(batch)
        if len(values) > most:
            accumulator.fail_attempt(batch, TOO_LARGE, 0)
            continue
        assert sequence in (expected, -1)
        accumulator.acknowledge(batch, offset, -1)
        expected, offset = expected + len(values), offset + len(values)
        stored.append(values)
    return stored


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("most", [1, 3, 7])
def test_pr_5_the_parts_are_sent_in_order_with_the_sequences_of_the_whole(
    most: int, codec: str, idempotent: bool
) -> None:
    accumulator, deliveries = many(enable_idempotence=idempotent, compression_type=codec)
    stored = store(accumulator, most)
    assert [value for values in stored for value in values] == [f"{n:04d}" for n in range(8)]
    assert max(map(len, stored)) <= most
    assert [delivery.result().offset for delivery in deliveries] == list(range(8))
    assert accumulator.used_bytes == 0 and accumulator.statistics.acknowledged_records == 8


def test_pr_6_what_was_sent_behind_keeps_its_sequences() -> None:
    """Its refusal as out of order follows from that of the first."""
    accumulator, first = many()
    store(accumulator, 8)
    deliveries, large = append(accumulator, *"xxxx"), take(accumulator)
    behind, small = append(accumulator, "behind"), take(accumulator)
    accumulator.fail_attempt(large, TOO_LARGE, 0)
    accumulator.fail_attempt(small, OutOfOrderSequenceNumber(), 0)
    order = []
    while accumulator.unfinished_batches:
        batch = take(accumulator)
        order.append(sent(batch))
        accumulator.acknowledge(batch, order[-1][0], -1)
    assert order == [(8, ["x", "x"]), (10, ["x", "x"]), (12, ["behind"])]
    offsets = [delivery.result().offset for delivery in first + deliveries + behind]
    assert offsets == list(range(13))


def test_pr_8_a_single_record_that_is_too_large_fails_alone() -> None:
    accumulator = identified(batch_size=16_384)
    texts = ["a", "b", "L" * 1_000, "c"]
    deliveries = append(accumulator, *texts)
    together = BatchDelivery(deliveries[0].batch, [10, 11, 12, 13], range(4))
    expected = 0
    while accumulator.unfinished_batches:
        batch = take(accumulator)
        sequence, values = sent(batch)
        if any(len(value) > 100 for value in values):
            accumulator.fail_attempt(batch, TOO_LARGE, 0)
            continue
        assert sequence == expected, "those behind it move up"
        accumulator.acknowledge(batch, sequence, -1)
        expected += len(values)
    assert [delivery.exception() is None for delivery in deliveries] == [True, True, False, True]
    assert [each.result().offset for each in deliveries if not each.exception()] == [0, 1, 2]
    assert isinstance(together.exception(), MessageTooLarge)
    assert (together.offsets, together.failed_indexes) == ([0, 1, -1, 2], [12])
    assert accumulator.statistics.failed_records == 1 and accumulator.used_bytes == 0


def test_a_batch_given_as_bytes_stays_whole() -> None:
    """Its caller awaits one outcome."""
    accumulator, _ = many()
    encoded = take(accumulator).encode()
    whole = identified().append_encoded(T0, bytes(encoded), 0)
    whole.attempts = 1
    assert whole.record_count == 8 and not whole.is_divisible


def test_pr_8_all_parts_fail_when_nothing_is_sent_any_more() -> None:
    accumulator, deliveries = many()
    accumulator.fail_attempt(take(accumulator), TOO_LARGE, 0)
    accumulator.fail_all(ConnectionLost("closed"))
    assert all(isinstance(each.exception(), ConnectionLost) for each in deliveries)
    assert deliveries[0].batch.done and accumulator.used_bytes == 0


def test_a_records_error_is_its_own_and_does_not_grow() -> None:
    accumulator, deliveries = many(2)
    failure = ConnectionLost("closed")
    failure.__cause__ = OSError("reset")
    accumulator.fail_all(failure)
    one, other = (each.exception() for each in deliveries)
    assert one is not None and other is not None and one is not other
    assert deliveries[0].exception() is one
    assert (type(one), str(one), one.__cause__) == (ConnectionLost, "closed", failure.__cause__)

    def depth() -> int:
        with pytest.raises(ConnectionLost) as caught:
            deliveries[0].result()
        return len(caught.traceback)

    assert depth() == depth() == depth()
    assert other.__traceback__ is None and failure.__traceback__ is None
