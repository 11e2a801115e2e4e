"""PR-3, PR-5, PR-6: batches, their order, and what the idempotent producer makes of failures."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.client.config import ProducerConfig
from barnabas.client.errors import ConnectionLost, DeliveryTimedOut
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import ProducerBatch
from barnabas.errors import (
    InvalidRecord,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
)
from barnabas.records.batch import iterate_batches, verify_crc
from barnabas.records.record import iterate_records
from barnabas.types import TopicPartition
from tests.kit.accumulators import SIZE, T0, identified, record


def append(accumulator: Accumulator, text: str = "x", now_ms: int = 0) -> ProducerBatch:
    batch, _ = accumulator.append(T0, record(text), now_ms, 0)
    return batch


def take(accumulator: Accumulator, now_ms: int = 0) -> ProducerBatch:
    (queue,) = accumulator.ready(now_ms).queues
    return accumulator.take(queue)


def take_new(accumulator: Accumulator, text: str) -> ProducerBatch:
    """A batch of one record, in flight."""
    append(accumulator, text)
    return take(accumulator)


def known(**options: Any) -> Accumulator:
    """Whose leader has a batch of it already: of one that it does not know it is sent one alone."""
    accumulator = identified(**options)
    append(accumulator, "first")
    accumulator.acknowledge(take(accumulator), 0, -1)
    return accumulator


def values(batch: ProducerBatch) -> list[str]:
    return [(each.value or b"").decode() for each in iterate_records(batch.encode())]


def test_linger_zero_sends_at_once_and_what_waits_shares_a_batch() -> None:
    """PR-3: no wait, yet records queued behind requests in flight share a batch."""
    accumulator = known()
    for number in range(5):
        append(accumulator, f"alone-{number}")
        take(accumulator)
    for number in range(3):
        append(accumulator, f"together-{number}")
    assert accumulator.ready(0).queues == [], "five are in flight: the broker remembers no more"
    first = accumulator.unfinished_batches[0]
    accumulator.acknowledge(first, 0, -1)
    assert values(take(accumulator)) == ["together-0", "together-1", "together-2"]


def test_a_long_linger_waits_but_a_full_batch_goes_at_once() -> None:
    """PR-3: linger one hour."""
    hour_ms = 3_600_000
    accumulator = identified(linger_ms=hour_ms, delivery_timeout_ms=2 * hour_ms)
    append(accumulator, now_ms=1_000)
    assert accumulator.ready(1_000) == ([], 1_000 + hour_ms)
    append(accumulator, now_ms=2_000)
    assert accumulator.ready(hour_ms).queues == []
    append(accumulator, now_ms=3_000)
    full = take(accumulator, 3_000)
    assert full.record_count == 3
    accumulator.acknowledge(full, 0, -1)
    append(accumulator, now_ms=4_000)
    assert accumulator.ready(4_000 + hour_ms - 1).queues == []
    assert take(accumulator, 4_000 + hour_ms).record_count == 1


def test_flush_and_a_crowded_buffer_end_the_linger() -> None:
    accumulator = identified(linger_ms=3_600_000, buffer_memory=1_000)
    append(accumulator)
    assert accumulator.ready(0).queues == []
    accumulator.flushing += 1
    assert len(accumulator.ready(0).queues) == 1
    accumulator.flushing -= 1
    assert accumulator.has_room(778)
    assert not accumulator.has_room(779)
    accumulator.append(TopicPartition("t", 1), record(size_bytes=700), 0, 0)
    assert len(accumulator.ready(0).queues) == 2


def test_memory_is_given_back_with_the_outcome() -> None:
    accumulator = identified()
    append(accumulator)
    append(accumulator)
    assert accumulator.used_bytes == 61 + 2 * SIZE
    batch = take(accumulator)
    assert accumulator.used_bytes == 61 + 2 * SIZE
    accumulator.acknowledge(batch, 0, -1)
    assert accumulator.used_bytes == 0
    assert accumulator.unfinished_batches == []


def test_sequences_follow_each_other_and_wrap() -> None:
    """PR-6: a sequence per partition, counting records, 0 behind the largest int32."""
    accumulator = identified()
    append(accumulator)
    queue = accumulator.ready(0).queues[0]
    queue.next_sequence = 2**31 - 2
    append(accumulator)
    append(accumulator)
    first = take(accumulator)
    assert first.base_sequence == 2**31 - 2
    accumulator.acknowledge(first, 0, -1)
    append(accumulator)
    assert take(accumulator).base_sequence == 1


def test_a_retry_keeps_its_bytes_and_its_place() -> None:
    """PR-5, PR-6: the same sequence again, in front of everything younger."""
    accumulator = known()
    batches = []
    for number in range(3):
        append(accumulator, f"r{number}")
        batches.append(take(accumulator))
    append(accumulator, "younger")
    sent = batches[0].encode()
    accumulator.fail_attempt(batches[1], NotLeaderOrFollower(), 100)
    assert accumulator.ready(1_000).queues == [], "two are still in flight: nothing may overtake"
    accumulator.acknowledge(batches[2], 7, -1)
    accumulator.fail_attempt(batches[0], NotLeaderOrFollower(), 200)
    assert accumulator.ready(199) == ([], 200)
    assert take(accumulator, 200) is batches[0]
    assert batches[0].encode() == sent
    assert take(accumulator, 200) is batches[1]
    assert values(take(accumulator, 200)) == ["younger"]


def test_what_follows_a_refused_batch_moves_up() -> None:
    """PR-6: a refused batch leaves no gap in the sequence."""
    accumulator = known()
    refused = take_new(accumulator, "a")
    following = take_new(accumulator, "b")
    accumulator.fail_attempt(refused, InvalidRecord("no"), 0)
    assert isinstance(refused.error, InvalidRecord)
    accumulator.fail_attempt(following, OutOfOrderSequenceNumber(), 0)
    again = take(accumulator)
    assert again is following
    assert again.base_sequence == 1
    ((_, header),) = iterate_batches(again.encode())
    assert (header.base_sequence, header.producer_id) == (1, 9)
    assert verify_crc(again.encode(), 0, header)


def test_the_first_batch_of_an_identity_travels_alone() -> None:
    """PR-6: one behind it would be taken, even if the first is refused: as a broker does it with
    any first sequence of a producer that it does not know. What moves up then would be stored under
    a sequence that the next batch has too, which would be taken for a repetition and be lost."""
    accumulator = identified()
    first = take_new(accumulator, "first")
    append(accumulator, "second")
    assert accumulator.ready(0).queues == []
    accumulator.acknowledge(first, 0, -1)
    take(accumulator)
    append(accumulator, "third")
    take(accumulator)
    assert accumulator.in_flight_count == 2


def test_an_unknown_sequence_needs_another_producer_id() -> None:
    """PR-6: after an outcome that will never be known no sequence is right any more."""
    accumulator = identified(delivery_timeout_ms=1_000)
    append(accumulator)
    batch = take(accumulator)
    accumulator.fail_attempt(batch, ConnectionLost("gone"), 100)
    append(accumulator, "younger", now_ms=900)
    assert accumulator.expire(1_000) == [batch]
    assert isinstance(batch.error, DeliveryTimedOut)
    assert "t-0" in str(batch.error)
    assert "sent 1 time, no response to the last attempt (gone)" in str(batch.error)
    assert accumulator.needs_producer_id
    accumulator.identify(10, 0)
    younger = take(accumulator, 1_000)
    assert younger.base_sequence == 0
    ((_, header),) = iterate_batches(younger.encode())
    assert header.producer_id == 10


def two_in_doubt(**options: Any) -> tuple[Accumulator, ProducerBatch, ProducerBatch]:
    """Both are sent, both answers lost, and the older one has expired since."""
    accumulator = known(delivery_timeout_ms=1_000, **options)
    older = take_new(accumulator, "older")
    append(accumulator, "younger", now_ms=500)
    younger = take(accumulator, 500)
    for each in (older, younger):
        accumulator.fail_attempt(each, ConnectionLost("gone"), 0)
    assert accumulator.expire(1_000) == [older]
    return accumulator, older, younger


def test_what_is_behind_an_expired_batch_goes_again_under_its_old_sequence() -> None:
    """PR-6, KIP-360: under another identity it would be stored twice, if both are in the log."""
    accumulator, _, younger = two_in_doubt()
    sent = younger.base_sequence
    append(accumulator, "new", now_ms=1_000)
    assert not accumulator.needs_producer_id
    assert take(accumulator, 1_000) is younger
    assert (younger.base_sequence, younger.identity.producer_id) == (sent, 9)
    assert accumulator.ready(1_000).queues == [], "what is new waits until that is known"
    accumulator.acknowledge(younger, 2, -1)
    assert not accumulator.needs_producer_id
    assert take(accumulator, 1_000).base_sequence == sent + 1


def test_sequences_are_lost_where_an_expired_batch_is_not_in_the_log() -> None:
    """PR-6, KIP-360: the leader refuses what is behind it, so that is nowhere, either."""
    accumulator, _, younger = two_in_doubt()
    accumulator.fail_attempt(take(accumulator, 1_000), OutOfOrderSequenceNumber(), 0)
    assert accumulator.needs_producer_id and not younger.done
    accumulator.identify(10, 0)
    assert take(accumulator, 1_000) is younger
    assert (younger.base_sequence, younger.identity.producer_id) == (0, 10)


def test_sequences_are_lost_where_nothing_is_left_that_could_tell() -> None:
    """PR-6, KIP-360."""
    accumulator, _, younger = two_in_doubt()
    append(accumulator, "new", now_ms=1_000)
    assert accumulator.expire(1_500) == [younger]
    assert accumulator.needs_producer_id
    accumulator.identify(10, 0)
    assert take(accumulator, 1_500).base_sequence == 0


def test_in_doubt_and_then_refused_for_good_is_in_doubt_for_ever() -> None:
    """PR-6: its first attempt may be stored. What comes next must not get its sequence: the leader
    would take it for a repetition and acknowledge what it does not store."""
    accumulator = known()
    batch = take_new(accumulator, "refused at last")
    accumulator.fail_attempt(batch, ConnectionLost("gone"), 0)
    accumulator.fail_attempt(take(accumulator), InvalidRecord("no"), 0)
    assert isinstance(batch.error, InvalidRecord)
    assert accumulator.needs_producer_id
    accumulator.identify(10, 0)
    following = take_new(accumulator, "following")
    assert (following.base_sequence, following.identity.producer_id) == (0, 10)


def test_behind_one_refused_in_doubt_sequences_do_not_move_up() -> None:
    """PR-6: as above, where one is in flight behind it."""
    accumulator = known()
    batch = take_new(accumulator, "refused at last")
    behind = take_new(accumulator, "behind")
    for each in (batch, behind):
        accumulator.fail_attempt(each, ConnectionLost("gone"), 0)
    sent = behind.base_sequence
    take(accumulator)
    take(accumulator)
    accumulator.fail_attempt(batch, InvalidRecord("no"), 0)
    assert behind.base_sequence == sent
    assert not accumulator.needs_producer_id
    accumulator.acknowledge(behind, 2, -1)
    assert take_new(accumulator, "following").base_sequence == sent + 1


def test_an_acknowledgement_may_take_away_the_last_that_could_tell() -> None:
    """PR-5: what it says is stored is not sent again, and what was behind that goes on anyway."""
    accumulator = known()
    older, younger, doubtful = (take_new(accumulator, text) for text in "abc")
    for batch in (older, younger, doubtful):
        accumulator.fail_attempt(batch, ConnectionLost("gone"), 0)
    for _ in range(3):
        take(accumulator)
    append(accumulator, "following")
    accumulator.fail_attempt(doubtful, InvalidRecord("no"), 0)
    accumulator.fail_attempt(older, OutOfOrderSequenceNumber(), 0)
    accumulator.acknowledge(younger, 2, -1)
    assert older.error is None and older.done
    assert accumulator.needs_producer_id
    accumulator.identify(9, 1)
    assert values(take(accumulator)) == ["following"]


def test_a_transaction_does_not_wait_for_what_is_behind() -> None:
    """PR-7: with one of its batches given up it can only be aborted."""
    accumulator, _, _ = two_in_doubt(transactional_id="t")
    assert accumulator.needs_producer_id


def test_a_record_that_fails_leaves_no_batch_behind() -> None:
    """PR-3: an empty batch would be sent, or wait, for no record."""
    accumulator = known()
    broken = record()._replace(size_bytes=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        accumulator.append(T0, broken, 0, 0)
    assert (accumulator.unfinished_batches, accumulator.used_bytes) == ([], 0)
    assert accumulator.ready(0) == ([], None)
    assert values(take_new(accumulator, "next")) == ["next"]


@pytest.mark.parametrize(
    ("has_id", "reason"),
    [(True, "never sent (no leader, no broker)"), (False, "never sent (no producer id yet)")],
)
def test_the_error_says_why_a_batch_was_never_sent(has_id: bool, reason: str) -> None:
    config = ProducerConfig()._replace(delivery_timeout_ms=1_000)
    accumulator = Accumulator(config)
    if has_id:
        accumulator.identify(9, 0)
    batch = append(accumulator)
    accumulator.expire(1_000)
    assert reason in str(batch.error)


def test_what_is_older_than_an_acknowledged_batch_is_stored() -> None:
    """PR-6: two are in the log, their answers are lost; the leader comes back with a snapshot: it
    has a producer's last batch alone. As it refuses gaps, it has the first of them as well."""
    accumulator = known()
    older = take_new(accumulator, "older")
    younger = take_new(accumulator, "younger")
    for each in (older, younger):
        accumulator.fail_attempt(each, ConnectionLost("gone"), 0)
    assert (take(accumulator), take(accumulator)) == (older, younger)
    accumulator.fail_attempt(older, OutOfOrderSequenceNumber(), 0)
    accumulator.acknowledge(younger, 17, -1)
    assert (older.done, older.error, older.base_offset) == (True, None, -1)
    assert not accumulator.needs_producer_id
    assert (accumulator.ready(0).queues, accumulator.unfinished_batches) == ([], [])


def test_what_was_acknowledged_in_the_meantime_counts_as_well() -> None:
    """PR-6: as above, where the younger one had its answer before the leader came back."""
    accumulator = known()
    older = take_new(accumulator, "older")
    younger = take_new(accumulator, "younger")
    accumulator.fail_attempt(older, NotLeaderOrFollower(), 0)
    accumulator.acknowledge(younger, 17, -1)
    assert take(accumulator) is older
    accumulator.fail_attempt(older, OutOfOrderSequenceNumber(), 0)
    assert (older.done, older.error) == (True, None)
    assert not accumulator.needs_producer_id
    assert accumulator.unfinished_batches == []


def test_what_is_out_of_order_waits_for_those_that_were_sent_behind_it() -> None:
    """PR-6: else, refused each time before the younger one is taken, it would go on for ever."""
    accumulator = known()
    older = take_new(accumulator, "older")
    younger = take_new(accumulator, "younger")
    for each in (older, younger):
        accumulator.fail_attempt(each, ConnectionLost("gone"), 0)
    append(accumulator, "never sent")
    assert take(accumulator) is older
    accumulator.fail_attempt(older, OutOfOrderSequenceNumber(), 0)
    assert take(accumulator) is younger
    assert accumulator.ready(0).queues == []
    accumulator.fail_attempt(younger, NotLeaderOrFollower(), 0)
    assert take(accumulator) is older, "another leader is to hear of both, in order"
    accumulator.fail_attempt(older, OutOfOrderSequenceNumber(), 0)
    accumulator.acknowledge(take(accumulator), 17, -1)
    assert (older.done, older.error) == (True, None)
    assert values(take(accumulator)) == ["never sent"]


def test_sequences_are_lost_where_all_that_was_sent_is_out_of_order() -> None:
    """PR-6: no acknowledgement says that the leader has them: they go under a new identity."""
    accumulator = known()
    older = take_new(accumulator, "older")
    younger = take_new(accumulator, "younger")
    accumulator.fail_attempt(older, OutOfOrderSequenceNumber(), 0)
    assert not accumulator.needs_producer_id
    accumulator.fail_attempt(younger, OutOfOrderSequenceNumber(), 0)
    assert accumulator.needs_producer_id
    accumulator.identify(10, 0)
    assert take(accumulator) is older
    assert (older.identity.producer_id, older.base_sequence) == (10, 0)


def test_sequences_that_are_lost_are_those_of_one_partition() -> None:
    """PR-6: in another one a batch whose answer is lost goes again as it was, or its leader, which
    may have it, would not see that it is the same."""
    accumulator = known()
    other, _ = accumulator.append(TopicPartition("t", 1), record(), 0, 0)
    take(accumulator)
    sent = other.encode()
    lost = take_new(accumulator, "lost")
    accumulator.fail_attempt(other, ConnectionLost("gone"), 0)
    accumulator.fail_attempt(lost, OutOfOrderSequenceNumber(), 0)
    accumulator.identify(10, 0)
    for queue in accumulator.ready(0).queues:
        accumulator.take(queue)
    assert other.encode() == sent
    ((_, header),) = iterate_batches(lost.encode())
    assert (header.producer_id, header.base_sequence) == (10, 0)


def test_a_batch_that_goes_again_is_in_doubt() -> None:
    """What it is failed with while it waits may be another's error: it says nothing about it."""
    accumulator = identified()
    append(accumulator)
    batch = take(accumulator)
    assert not batch.in_doubt
    accumulator.fail_attempt(batch, NotLeaderOrFollower(), 0)
    accumulator.fail_waiting(InvalidRecord("another one's"))
    assert isinstance(batch.error, InvalidRecord)
    assert batch.in_doubt


def test_a_batch_that_only_moves_up_is_in_no_doubt() -> None:
    """PR-6: refused behind a refused one it is not stored; nothing is lost if it is refused too."""
    accumulator = known()
    refused = take_new(accumulator, "a")
    following = take_new(accumulator, "b")
    accumulator.fail_attempt(refused, InvalidRecord("no"), 0)
    accumulator.fail_attempt(following, OutOfOrderSequenceNumber(), 0)
    assert not following.in_doubt
    accumulator.fail_attempt(take(accumulator), InvalidRecord("no"), 0)
    assert isinstance(following.error, InvalidRecord)
    assert not accumulator.needs_producer_id


def test_without_retries_a_failure_is_final() -> None:
    accumulator = Accumulator(ProducerConfig(retries=0, enable_idempotence=False))
    batch = append(accumulator)
    assert not accumulator.needs_producer_id
    take(accumulator)
    accumulator.fail_attempt(batch, ConnectionLost("gone"), 0)
    assert isinstance(batch.error, ConnectionLost)
    assert accumulator.used_bytes == 0


def test_a_transaction_marks_its_batches() -> None:
    """PR-7: the same bytes otherwise; and a checksum that fits."""
    accumulator = identified(transactional_id="t")
    accumulator.identify(9, 3)
    append(accumulator)
    batch = take(accumulator)
    data = batch.encode(is_transactional=True)
    ((position, header),) = iterate_batches(data)
    assert header.is_transactional and header.producer_epoch == 3
    assert verify_crc(data, position, header)
    assert batch.encode(is_transactional=True) == data


def test_a_transaction_ends_where_sequences_are_lost() -> None:
    """PR-7: a new identity on the way would take part of it out of the transaction."""
    accumulator = identified(transactional_id="t")
    append(accumulator)
    batch = take(accumulator)
    accumulator.fail_attempt(batch, OutOfOrderSequenceNumber(), 0)
    assert isinstance(batch.error, OutOfOrderSequenceNumber)
    assert accumulator.needs_producer_id
    with_another = identified()
    append(with_another)
    again = take(with_another)
    with_another.fail_attempt(again, OutOfOrderSequenceNumber(), 0)
    assert again.error is None and with_another.needs_producer_id


def test_an_idempotent_batch_is_not_taken_without_a_producer_id() -> None:
    accumulator = Accumulator(ProducerConfig())
    assert accumulator.needs_producer_id
    append(accumulator)
    with pytest.raises(AssertionError):
        take(accumulator)
