"""Producer snapshots in Kafka's bytes."""

from __future__ import annotations

import pytest

from barnabas.errors import CorruptData
from barnabas.storage.producers import Appended, Producer, Producers
from barnabas.storage.snapshot import decode_snapshot, encode_snapshot

GOLDEN = bytes.fromhex(
    "00017016ed65000000010000000000000fa0000000000009000000000000006d000000090000018bcfe56800"
    "00000007ffffffffffffffff"
)


def _producers() -> Producers:
    producer = Producer(epoch=0)
    producer.batches = (Appended(9, 109, 9, 1700000000000),)
    producer.timestamp = 1700000000000
    producer.coordinator_epoch = 7
    producers = Producers()
    producers.take_over({4000: producer})
    return producers


def test_st_1_a_snapshot_has_kafkas_bytes() -> None:
    assert encode_snapshot(_producers()).hex() == GOLDEN.hex()


def test_a_snapshot_is_read_as_it_was_written() -> None:
    found = decode_snapshot(GOLDEN).get(4000)
    assert found is not None
    assert found.batches == (Appended(9, 109, 9, 1700000000000),)
    assert (found.epoch, found.timestamp, found.coordinator_epoch) == (0, 1700000000000, 7)
    assert found.transaction_offset == -1


def test_no_file_takes_ten_bytes() -> None:
    assert len(encode_snapshot(Producers())) == 10
    assert len(decode_snapshot(encode_snapshot(Producers()))) == 0


def test_damage_is_noticed_at_every_byte() -> None:
    for at in range(len(GOLDEN)):
        damaged = bytearray(GOLDEN)
        damaged[at] ^= 1
        with pytest.raises(CorruptData):
            decode_snapshot(bytes(damaged))
        with pytest.raises(CorruptData):
            decode_snapshot(GOLDEN[:at])
