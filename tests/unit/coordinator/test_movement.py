"""The movement of a rebalance, from two sets of assignments."""

from __future__ import annotations

from barnabas.coordinator.movement import MOST_COMPARED_BYTES, UNKNOWN, Movement, movement
from barnabas.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    TopicPartitions,
    encode_consumer_protocol,
)
from barnabas.types import TopicPartition


def has(*numbers: int) -> bytes:
    topics = [TopicPartitions(topic="t", partitions=list(numbers))]
    return encode_consumer_protocol(ConsumerProtocolAssignment(assigned_partitions=topics))


def test_partitions_that_change_hands() -> None:
    moved = movement(True, {"a": has(0, 1, 2)}, {"a": has(0, 1), "b": has(2)})
    assert moved == Movement(1, 0, 0, 3, ((TopicPartition("t", 2), "a", "b"),), False)


def test_new_partitions_and_new_bytes_harm_no_member() -> None:
    moved = movement(True, {"a": has(0, 1)}, {"a": has(1, 0), "b": has(2)})
    assert (moved.moved, moved.given, moved.is_harmless) == (0, 1, True)
    assert movement(True, {}, {}) == Movement(0, 0, 0, 0, (), True)


def test_what_is_revoked_is_not_harmless() -> None:
    """KIP-429: between two rebalances no member has it."""
    moved = movement(True, {"a": has(0, 1)}, {"a": has(0), "b": has()})
    assert (moved.moved, moved.taken, moved.is_harmless) == (0, 1, False)


def test_what_cannot_be_read_is_compared_as_a_whole() -> None:
    for is_consumers, before in ((False, b"x"), (True, b"x")):
        same = movement(is_consumers, {"a": before}, {"a": before, "b": b"y"})
        other = movement(is_consumers, {"a": before}, {"a": b"y"})
        assert (same.moved, same.is_harmless) == (UNKNOWN, True)
        assert (other.moved, other.is_harmless) == (UNKNOWN, False)


def test_large_assignments_are_not_taken_apart() -> None:
    """It would block the broker; that all members kept theirs is known nevertheless."""
    large = has(*range(MOST_COMPARED_BYTES // 4))
    assert movement(True, {"a": large}, {"a": large}).is_harmless
    assert movement(True, {"a": large}, {"a": large}).moved == UNKNOWN
    assert movement(True, {"a": large}, {"b": large}) == Movement(UNKNOWN, 0, 0, 0, (), False)
