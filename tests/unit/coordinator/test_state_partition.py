"""GC-1: which partition of an internal topic keeps a key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.coordinator.state_partition import java_hash, partition_of


@pytest.mark.parametrize(
    ("key", "hashed", "partition"),
    [
        ("MrATooConsumer", 213599406, 6),
        ("console-consumer-70850", 163941881, 31),
        ("polygenelubricants", -2147483648, 0),
        ("g1", 3242, 42),
        ("my-group", -1906497762, 12),
        ("grüße", 98768023, 23),
        ("tx1", 115245, 45),
        ("", 0, 0),
    ],
)
def test_the_examples_of_kafka_gc_1(key: str, hashed: int, partition: int) -> None:
    assert java_hash(key) == hashed
    assert partition_of(key, 50) == partition


def test_characters_beyond_sixteen_bits_are_two_units_gc_1() -> None:
    high, low = 0xD83D, 0xDE00
    assert java_hash("\N{GRINNING FACE}") == 31 * high + low


def test_where_a_real_kafka_put_its_groups_and_transactional_ids_gc_1(shared: Path) -> None:
    path = shared / "fixtures/kafka-3.9/expected/single-coordinators.json"
    placed = json.loads(path.read_text())
    keys = {**placed["group_partition"], **placed["transaction_partition"]}
    for key, (hashed, number) in keys.items():
        assert (java_hash(key), partition_of(key, 50)) == (hashed, number), key
    assert len(keys) > 15
