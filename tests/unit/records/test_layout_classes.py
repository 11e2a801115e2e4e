"""Records of few classes: the fast path is taken where it should be, and agrees with the other."""

from __future__ import annotations

import numpy as np
import pytest

from barnabas.records.batch import HEADER_BYTES
from barnabas.records.fields import PADDING, Fields, any_fields, record_starts
from barnabas.records.layout_classes import uniform_fields
from barnabas.records.record import BatchBuilder

NOW_MS = 1_700_000_000_000


def records(*rows: tuple[int, bytes | None, bytes | None]) -> tuple[bytes, int]:
    """The octets of one batch's records, padded, and how many they are; times from `NOW_MS` on."""
    builder = BatchBuilder()
    for after_ms, key, value in rows:
        builder.append(NOW_MS + after_ms, key, value)
    return builder.build(0)[HEADER_BYTES:] + PADDING, len(rows)


def both(data: bytes, count: int) -> tuple[Fields | None, Fields]:
    octets = np.frombuffer(data, np.uint8)
    end = len(data) - len(PADDING)
    starts = record_starts(data, [end], [count])
    slow = any_fields(octets, starts, np.append(starts[1:], end))
    return uniform_fields(data, octets, starts), slow


def assert_fast_and_equal(data: bytes, count: int) -> None:
    fast, slow = both(data, count)
    assert fast is not None, "these are few classes"
    for number, (ours, theirs) in enumerate(zip(flat(fast), flat(slow), strict=True)):
        differing = np.flatnonzero(ours != theirs)
        assert not differing.size, f"column {number} differs first at record {differing[0]}"


def flat(fields: Fields) -> list[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    times, offsets, keys, values, cursor = fields
    # The position of a null is not used.
    places = [np.where(blobs.lengths < 0, 0, blobs.positions) for blobs in (keys, values)]
    return [times, offsets, *places, keys.lengths, values.lengths, cursor]


@pytest.mark.parametrize("key", [None, b"", b"k" * 8, b"k" * 70])
@pytest.mark.parametrize("value", [None, b"", b"v" * 100, b"v" * 9000])
def test_all_alike(key: bytes | None, value: bytes | None) -> None:
    assert_fast_and_equal(*records(*[(0, key, value)] * 40))


def test_deltas_of_every_width() -> None:
    """Offsets of one to three octets, times of one to four, forwards and backwards."""
    for step_ms in (0, 1, -1, 63, 9_001, -700_000):
        assert_fast_and_equal(*records(*[(step_ms * n, b"key", b"value") for n in range(8_300)]))


def test_classes_that_alternate() -> None:
    rows = [(0, b"k", b"v" * 10), (0, None, b"v" * 11), (0, b"k", None)]
    assert_fast_and_equal(*records(*rows * 50))


def test_the_same_length_with_the_octets_elsewhere() -> None:
    """Key and value together are as long: only the lengths inside distinguish these."""
    assert_fast_and_equal(*records(*[(0, b"k" * (n % 3), b"v" * (9 - n % 3)) for n in range(90)]))


def test_a_value_length_that_differs_behind_the_same_head() -> None:
    """A header more, a value less: the record is as long."""
    builder = BatchBuilder()
    for number in range(60):
        if number % 2:
            builder.append(NOW_MS, b"k", b"v" * 20, [("a", b"b")])
        else:
            builder.append(NOW_MS, b"k", b"v" * 24)
    assert_fast_and_equal(builder.build(0)[HEADER_BYTES:] + PADDING, 60)


def test_many_classes_are_left_to_the_other() -> None:
    fast, _ = both(*records(*[(0, None, b"v" * n) for n in range(1, 100)]))
    assert fast is None


def test_what_reaches_beyond_its_record_is_of_no_class() -> None:
    data, count = records(*[(0, b"k", b"v" * 20)] * 30)
    size = data[0] >> 1
    for at in (4, 6):  # key length, value length
        hostile = bytearray(data)
        for record in range(count):
            hostile[record * (size + 1) + at] = 0x7E  # 63
        octets = np.frombuffer(bytes(hostile), np.uint8)
        starts = np.arange(count) * (size + 1)
        assert uniform_fields(bytes(hostile), octets, starts) is None
