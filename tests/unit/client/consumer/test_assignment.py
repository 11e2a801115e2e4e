"""CO-2: where a partition is read, and when that has to be asked again (KIP-320)."""

from __future__ import annotations

from barnabas.client.consumer.assignment import AssignedPartition, changes
from barnabas.client.consumer.fetched import Chunk, ConsumerRecord
from barnabas.client.consumer.reading import Reading
from barnabas.records.batch import assign_in_place
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)
ID, OTHER_ID = b"i" * 16, b"j" * 16


def at(offset: int, epoch: int) -> AssignedPartition:
    """A position that the leader of its own epoch has vouched for."""
    state = AssignedPartition(T0, "latest")
    state.seek(offset, epoch)
    state.follow(ID, epoch)
    assert not state.is_doubtful
    return state


def batch(base_offset: int, count: int, epoch: int) -> bytes:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(1_000, None, b"value")
    built = bytearray(builder.build(base_offset))
    assign_in_place(built, 0, base_offset, epoch)
    return bytes(built)


def test_a_newer_leader_makes_a_position_doubtful_once() -> None:
    state = at(10, 3)
    state.fetch_offset, state.buffered = 15, 1
    generation = state.generation
    state.follow(ID, 4)
    assert state.is_doubtful
    assert not state.is_current(generation), "what the older leader sent is not given any more"
    assert (state.position, state.fetch_offset, state.buffered) == (10, 10, 0)
    state.is_doubtful = False  # it has answered
    generation = state.generation
    state.follow(ID, 4)
    assert not state.is_doubtful and state.is_current(generation)
    state.follow(ID, 5)
    assert state.is_doubtful


def test_a_position_of_the_leaders_own_epoch_is_believed() -> None:
    state = AssignedPartition(T0, "latest")
    state.seek(10, 3)
    state.follow(ID, 3)
    assert not state.is_doubtful
    state.seek(10, 2)
    state.follow(ID, 3)
    assert state.is_doubtful, "as one that was committed in the time of another leader"


def test_without_epochs_there_is_no_doubt() -> None:
    """Brokers and batches that do not know epochs, and a seek by the user: as it was before."""
    for epoch, leader_epoch in ((-1, 4), (3, -1), (-1, -1)):
        state = at(10, epoch)
        generation = state.generation
        state.follow(ID, leader_epoch)
        assert not state.is_doubtful and state.is_current(generation)
    state = at(10, 3)
    state.follow(ID, 4)
    state.seek(7)
    state.follow(ID, 4)
    assert not state.is_doubtful


def test_a_position_says_nothing_of_a_topic_that_was_created_again() -> None:
    state = at(10, 3)
    assert not state.follow(OTHER_ID, 0), "the caller decides where to start"
    assert not state.is_doubtful
    assert (state.epoch, state.leader_epoch) == (-1, 0)
    state.seek_by("earliest")
    assert state.follow(OTHER_ID, 0), "once"


def test_a_position_that_is_looked_up_is_not_of_the_old_topic() -> None:
    state = at(10, 3)
    state.seek_by("earliest")
    assert state.follow(OTHER_ID, 0)


def test_an_unknown_topic_id_changes_nothing() -> None:
    """As from a broker that does not know ids, of a cluster that is being upgraded."""
    state = at(10, 3)
    assert state.follow(bytes(16), 3)
    assert (state.position, state.topic_id) == (10, ID)


def test_the_epoch_goes_with_the_records_that_the_user_has() -> None:
    state = at(0, -1)
    data = batch(0, 3, 1) + batch(3, 3, 1) + batch(6, 2, 4)
    reading = Reading(state, Chunk(T0, 0, memoryview(data)), check_crcs=True)
    seen = []
    for most, more in ((2, True), (2, True), (2, True), (1, True), (5, False)):
        assert reading.take_into([], most) is more
        seen.append((state.position, state.epoch))
    assert seen == [(2, 1), (4, 1), (6, 1), (7, 4), (8, 4)]


def test_corrupt_data_leaves_the_epoch_of_the_record_in_front_of_it() -> None:
    state = at(0, -1)
    data = bytearray(batch(0, 3, 1) + batch(3, 3, 2))
    data[-1] ^= 1
    reading = Reading(state, Chunk(T0, 0, memoryview(bytes(data))), check_crcs=True)
    records: list[ConsumerRecord] = []
    assert not reading.take_into(records, 10)
    assert len(records) == 3 and state.error is not None
    assert (state.position, state.fetch_offset, state.epoch) == (3, 3, 1)


def test_changes_of_many_partitions_are_found_in_one_pass() -> None:
    """A cooperative rebalance compares both lists on the event loop (KIP-429)."""
    lookups = 0

    class Counted(str):
        def __hash__(self) -> int:
            nonlocal lookups
            lookups += 1
            return str.__hash__(self)

    topic = Counted("t")
    before = [TopicPartition(topic, number) for number in range(5_000)]
    after = [TopicPartition(topic, number) for number in reversed(range(2_500, 7_500))]
    kept, new = changes(before, after)
    assert kept == before[2_500:]
    assert new == after[:2_500]
    assert lookups <= 4 * 5_000
