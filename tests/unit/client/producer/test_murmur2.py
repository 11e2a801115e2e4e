"""murmur2 against what Java computes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.client.producer.murmur2 import murmur2, partition_for_key


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_hashes_as_java_does(key: bytes, expected: int) -> None:
    """PR-2: the published values of Kafka's own hash, as signed numbers."""
    assert murmur2(key) == expected & 0xFFFFFFFF


def test_real_clients_chose_the_same_partitions(shared: Path) -> None:
    """PR-2: every key that a real producer wrote to the five partitions of `keyed`."""
    path = shared / "fixtures/kafka-3.9/expected/single-coordinators.json"
    keys = json.loads(path.read_text())["murmur2_keyed_topic"]
    assert len(keys) > 50
    for key, (hashed, partition) in keys.items():
        assert murmur2(key.encode()) == hashed & 0xFFFFFFFF, key
        assert partition_for_key(key.encode(), 5) == partition, key
