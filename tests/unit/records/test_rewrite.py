"""Checking the records of a batch, and recompressing them."""

from __future__ import annotations

import pytest

from barnabas.errors import CorruptData
from barnabas.records.batch import HEADER_BYTES, BatchHeader, read_header, seal, verify_crc
from barnabas.records.compression import CODEC_NAMES, GZIP, LZ4, NONE, ZSTD, compress
from barnabas.records.record import BatchBuilder, iterate_records
from barnabas.records.rewrite import Rules, Walk, correct_max_timestamp, plain_section, rewrite

T0 = 1_700_000_000_000
KEYED = Rules(needs_key=True)


def build(*keys: bytes | None, codec: int = NONE, step_ms: int = 0) -> bytes:
    builder = BatchBuilder(codec, 7, 1, 5)
    for i, key in enumerate(keys):
        builder.append(T0 + i * step_ms, key, b"v%d" % i, ((f"h{i}", b"x"), ("n", None)))
    return bytes(builder.build())


def opened(batch: bytes) -> tuple[BatchHeader, bytes]:
    header = read_header(batch)
    return header, plain_section(memoryview(batch), header, 1 << 20)


def walked(batch: bytes, rules: Rules = Rules(), step: int = 1000) -> Walk:  # noqa: B008
    walk = Walk(*opened(batch), rules)
    while walk.step(step):
        pass
    return walk


def test_st_7_records_without_a_key_are_named_by_their_place() -> None:
    walk = walked(build(b"a", None, b"", None), KEYED)
    assert [(fault.record, fault.is_timestamp) for fault in walk.faults] == [(1, False), (3, False)]
    assert not walked(build(b"a", None)).faults


def test_timestamps_are_bounded_on_both_sides() -> None:
    batch = build(b"a", b"b", b"c", step_ms=10)
    rules = Rules(oldest_ms=T0 + 1, newest_ms=T0 + 19)
    faults = walked(batch, rules).faults
    assert [(fault.record, fault.is_timestamp) for fault in faults] == [(0, True), (2, True)]
    assert str(T0) in faults[0].message and str(T0 + 19) in faults[0].message
    assert not walked(batch, Rules(oldest_ms=T0, newest_ms=T0 + 20)).faults


def test_a_record_without_a_timestamp_has_none_that_could_be_wrong() -> None:
    builder = BatchBuilder()
    builder.append(-1, None, b"v")
    assert not walked(bytes(builder.build()), Rules(oldest_ms=5)).faults


def test_a_walk_is_the_same_in_steps_of_any_size() -> None:
    batch = build(*[b"k", None] * 50, step_ms=3)
    whole = walked(batch, KEYED)
    for step in (1, 7, 100):
        parts = walked(batch, KEYED, step)
        assert parts.faults == whole.faults
        assert parts.max_timestamp == whole.max_timestamp == T0 + 99 * 3


def test_a_thousand_faults_are_reported_and_all_are_counted() -> None:
    walk = walked(build(*[None] * 1500), KEYED)
    assert (len(walk.faults), walk.fault_count) == (1000, 1500)


def _damaged(at: int, to: int, drop: int = 0) -> tuple[BatchHeader, bytes]:
    header, plain = opened(build(b"key", b"key"))
    changed = plain[:at] + bytes([to]) + plain[at + 1 : len(plain) - drop]
    return header, changed


@pytest.mark.parametrize(
    ("at", "to", "drop", "said"),
    [
        (0, 0x7E, 0, "reaches from"),
        (0, 0x01, 0, "reaches from"),
        (3, 0x02, 0, "offset delta 1"),
        (4, 0x20, 0, "fill"),
        (11, 0x60, 0, "headers"),
        (12, 0x01, 0, "key is null"),
        (12, 0x10, 0, "beyond"),
        (0, 0x20, 3, "reaches|cut|fill"),
        (2, 0xFF, 0, "fill|cut|delta|bytes"),
    ],
)  # fmt: skip
def test_what_is_no_record_is_corrupt(at: int, to: int, drop: int, said: str) -> None:
    header, plain = _damaged(at, to, drop)
    with pytest.raises(CorruptData, match=said):
        Walk(header, plain, KEYED).step(10)


def test_bytes_behind_the_last_record_and_impossible_counts_are_corrupt() -> None:
    header, plain = opened(build(b"a"))
    with pytest.raises(CorruptData, match="1 bytes after"):
        Walk(header, plain + b"x", KEYED).step(10)
    with pytest.raises(CorruptData, match="9,999 records in"):
        Walk(header._replace(record_count=9999), plain, KEYED)
    with pytest.raises(CorruptData, match="truncated"):
        Walk(header._replace(record_count=2), plain, KEYED).step(10)


def test_a_timestamp_beyond_64_bits_is_corrupt() -> None:
    header, plain = opened(build(b"a"))
    far = header._replace(base_timestamp=(1 << 63) - 1)
    later = plain[:2] + b"\x02" + plain[3:]
    with pytest.raises(CorruptData, match="64 bits"):
        Walk(far, later, Rules()).step(10)


def test_a_bomb_is_not_unpacked() -> None:
    header = read_header(build(b"a", codec=GZIP))
    bomb = seal(header, compress(GZIP, bytes(1 << 22)))
    with pytest.raises(CorruptData, match="more than 1048576"):
        plain_section(memoryview(bomb), read_header(bomb), 1 << 20)


@pytest.mark.parametrize("target", range(5), ids=CODEC_NAMES)
@pytest.mark.parametrize("source", range(5), ids=CODEC_NAMES)
def test_records_survive_every_change_of_codec(source: int, target: int) -> None:
    batch = build(b"a", None, b"c", codec=source, step_ms=5)
    header, plain = opened(batch)
    again = rewrite(header, plain, codec=target, level=None)
    new = read_header(again)
    assert verify_crc(again, 0, new)
    assert new.codec == target
    changed = ("attributes", "batch_length", "crc")
    kept = {name: value for name, value in header._asdict().items() if name not in changed}
    assert kept.items() <= new._asdict().items()
    assert list(iterate_records(again)) == list(iterate_records(batch))


@pytest.mark.parametrize(
    ("codec", "low", "high"),
    [(GZIP, 1, 9), (LZ4, 9, 12), (ZSTD, -50, 19)],
    ids=["gzip", "lz4", "zstd"],
)
def test_levels_are_heeded(codec: int, low: int, high: int) -> None:
    """For lz4 9 is Java's name for its fast compressor; every other level is the thorough one."""
    keys = [b"%d some text that repeats %d" % (i, i * i) for i in range(300)]
    header, plain = opened(build(*keys))
    fast = rewrite(header, plain, codec=codec, level=low)
    thorough = rewrite(header, plain, codec=codec, level=high)
    assert len(thorough) < len(fast)
    assert list(iterate_records(fast)) == list(iterate_records(thorough))


def test_a_wrong_maximum_is_corrected_in_place() -> None:
    header, plain = opened(build(b"a", b"b", step_ms=5))
    lying = bytearray(seal(header._replace(max_timestamp=1 << 60), plain))
    walk = walked(bytes(lying))
    assert walk.max_timestamp == T0 + 5
    correct_max_timestamp(memoryview(lying), read_header(lying), walk.max_timestamp)
    assert bytes(lying) == build(b"a", b"b", step_ms=5)
    assert len(lying) > HEADER_BYTES
