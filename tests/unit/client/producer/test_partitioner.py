"""PR-2: where a record goes."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from barnabas.client.producer.murmur2 import partition_for_key
from barnabas.client.producer.partitioner import Partitioner, Partitions


class Counting:
    """Entropy that is none: 0, 1, 2 ... modulo the limit."""

    def __init__(self) -> None:
        self._next = -1

    def below(self, limit: int) -> int:
        self._next += 1
        return self._next % limit

    def uuid(self) -> bytes:
        return bytes(16)


class Seeded:
    """Entropy that is the same in every run."""

    def __init__(self) -> None:
        self._source = random.Random(7)

    def below(self, limit: int) -> int:
        return self._source.randrange(limit)

    def uuid(self) -> bytes:
        return self._source.randbytes(16)


FOUR = Partitions(4, (0, 1, 2, 3), 1)


def test_a_key_decides_by_its_hash() -> None:
    """PR-2: murmur2 modulo the number of partitions, leader or not."""
    partitioner = Partitioner("sticky", Counting(), 100)
    leaderless = Partitions(4, (), 1)
    for number in range(20_000):
        key = b"user-%d" % number
        assert partitioner.partition("t", key, leaderless) == partition_for_key(key, 4)
    # The same key maps elsewhere once the topic has grown.
    assert partitioner.partition("t", b"user-1", FOUR) == partition_for_key(b"user-1", 4)
    grown = Partitions(5, (0, 1, 2, 3, 4), 2)
    assert partitioner.partition("t", b"user-1", grown) == partition_for_key(b"user-1", 5)


def test_sticky_stays_for_one_batch_and_moves_on() -> None:
    """PR-2: one random available partition, kept for batch.size bytes."""
    partitioner = Partitioner("sticky", Seeded(), 100)
    seen = []
    for _ in range(40):
        seen.append(partitioner.partition("t", None, FOUR))
        partitioner.on_appended("t", 50)
    assert seen[0::2] == seen[1::2], "two records of 50 bytes share a partition"
    assert all(before != after for before, after in zip(seen[1::2], seen[2::2], strict=False))
    assert set(seen) == {0, 1, 2, 3}


def test_sticky_survives_a_refresh_and_leaves_a_leaderless_partition() -> None:
    partitioner = Partitioner("sticky", Counting(), 100)
    first = partitioner.partition("t", None, FOUR)
    assert partitioner.partition("t", None, FOUR._replace(generation=2)) == first
    others = tuple(number for number in range(4) if number != first)
    moved = partitioner.partition("t", None, Partitions(4, others, 3))
    assert moved in others


def test_round_robin_visits_the_available_partitions_in_turn() -> None:
    """PR-2: 2.3's default."""
    partitioner = Partitioner("round-robin", Counting(), 100)
    partitions = Partitions(4, (0, 2, 3), 1)
    seen = [partitioner.partition("t", None, partitions) for _ in range(6)]
    assert seen == [0, 2, 3, 0, 2, 3]


def test_random_until_refresh_keeps_one_partition_per_metadata() -> None:
    """PR-2: 0.8's rule."""
    partitioner = Partitioner("random-until-refresh", Counting(), 1)
    seen = [partitioner.partition("t", None, FOUR._replace(generation=g // 3)) for g in range(9)]
    assert seen == [0, 0, 0, 1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("rule", ["sticky", "round-robin", "random-until-refresh"])
def test_without_any_leader_every_partition_will_do(rule: str) -> None:
    """PR-2: none available: any."""
    partitioner = Partitioner(rule, Seeded(), 1)
    chosen = set()
    for generation in range(40):
        chosen.add(partitioner.partition("t", None, Partitions(3, (), generation)))
        partitioner.on_appended("t", 10)
    assert chosen == {0, 1, 2}


def test_a_custom_partitioner_decides_alone() -> None:
    """PR-2: a callable is allowed, and held to the topic's partitions."""

    def last(topic: str, key: bytes | None, partitions: Sequence[int]) -> int:
        return partitions[-1] if topic == "t" else 99

    partitioner = Partitioner(last, Counting(), 100)
    assert partitioner.partition("t", b"key", FOUR) == 3
    with pytest.raises(ValueError, match="partition 99 of other, which has 4"):
        partitioner.partition("other", None, FOUR)
