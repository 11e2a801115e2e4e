"""Stretches of records of one layout: taken where they are, and equal to the general decoder."""

from __future__ import annotations

import random

import numpy as np
import pytest

from barnabas.errors import CorruptData
from barnabas.records.batch import HEADER_BYTES
from barnabas.records.fields import PADDING, any_fields, binary, record_starts
from barnabas.records.record import BatchBuilder
from barnabas.records.record_tables import Rows, rows_of

NOW_MS = 1_700_000_000_000


def section(count: int, key: bytes | None, value: bytes | None, step_ms: int = 1) -> bytes:
    """The octets of one batch's records."""
    builder = BatchBuilder()
    for number in range(count):
        builder.append(NOW_MS + step_ms * number, _numbered(key, number), _numbered(value, number))
    return builder.build(0)[HEADER_BYTES:]


def _numbered(blob: bytes | None, number: int) -> bytes | None:
    return blob and (b"%d" % number + blob)[: len(blob)]


def by_fields(sections: list[bytes], counts: list[int]) -> Rows:
    """The same, field by field."""
    data = b"".join([*sections, PADDING])
    octets = np.frombuffer(data, np.uint8)
    starts = record_starts(data, [len(each) for each in sections], counts)
    fields = any_fields(octets, starts, np.append(starts[1:], len(data) - len(PADDING)))
    keys, values = binary(octets, fields.keys), binary(octets, fields.values)
    return Rows(fields.time_deltas, fields.offset_deltas, keys, values)


def plain(rows: Rows) -> list[list[object]]:
    return [column.tolist() for column in rows[:2]] + [column.to_pylist() for column in rows[2:]]


@pytest.mark.parametrize("key", [None, b"", b"k" * 8, b"k" * 70])
@pytest.mark.parametrize("value", [None, b"", b"v" * 16, b"v" * 100, b"v" * 9000])
def test_equals_the_general_decoder(key: bytes | None, value: bytes | None) -> None:
    """SP-1: offsets of one and two octets, more than one batch, in bytes and in views."""
    counts = [700, 1, 90]
    sections = [section(count, key, value) for count in counts]
    rows = rows_of([sections[0], *map(memoryview, sections[1:])], counts, fewest=1)
    if len(sections[1]) < 16:
        assert rows is None, "heads are loaded as 16 octets, and here a record ends before"
    else:
        assert rows is not None
        assert plain(rows) == plain(by_fields(sections, counts))


@pytest.mark.parametrize("step_ms", [0, 1, -1, 63, 9_001, -700_000])
def test_deltas_of_every_width(step_ms: int) -> None:
    sections = [section(8_300, b"key", b"v" * 20, step_ms)]
    rows = rows_of(sections, [8_300], fewest=1)
    assert rows is not None
    assert plain(rows) == plain(by_fields(sections, [8_300]))


def test_what_is_left_to_others() -> None:
    """Short stretches, widths that differ, and no records at all."""
    small = [section(100, b"key", b"v" * 20)] * 4
    assert rows_of(small, [100] * 4) is None
    assert rows_of([section(10_000, b"key", b"v" * 20)], [10_000]) is not None
    unlike = [section(600, b"key", b"v" * 20), section(600, b"key", b"v" * 21)]
    assert rows_of(unlike, [600, 600], fewest=1) is None
    assert rows_of([section(600, b"key", b"v" * 20), section(600, None, b"v" * 20)], [600, 600],
                   fewest=1) is None  # fmt: skip
    assert rows_of([], []) is None


def test_octets_behind_the_last_record() -> None:
    records = section(600, b"key", b"v" * 20)
    assert rows_of([records + bytes(31)], [600], fewest=1) is None
    assert rows_of([records[:-1]], [600], fewest=1) is None
    assert rows_of([records], [601], fewest=1) is None


@pytest.mark.thorough
def test_hostile_octets_are_decoded_alike_or_left_to_others() -> None:
    chance = random.Random(7)
    taken = 0
    for _ in range(1_500):
        count = chance.randrange(1, 40)
        octets = bytearray(section(count, b"key", b"v" * chance.choice((20, 63, 64))))
        for _ in range(chance.randrange(1, 4)):
            octets[chance.randrange(len(octets))] = chance.randrange(256)
        rows = rows_of([bytes(octets)], [count], fewest=1)
        if rows is not None:
            taken += 1
            assert plain(rows) == plain(by_fields([bytes(octets)], [count]))
        else:
            try:
                by_fields([bytes(octets)], [count])
            except CorruptData:
                continue
    assert taken > 100
    print(f"{taken} hostile batches decoded as tables, equal to the general decoder")
