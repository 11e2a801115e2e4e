"""Rewriting keeps every record, and a walk agrees with the reader of records about any bytes."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.records.batch import HEADER_BYTES, read_header, seal, verify_crc
from barnabas.records.compression import compress
from barnabas.records.record import Record, iterate_records
from barnabas.records.rewrite import Rules, Walk, plain_section, rewrite
from tests.kit.effort import examples
from tests.kit.storage.batches import Rows, build, codecs, rows


def walk_all(batch: bytes, rules: Rules, step: int) -> Walk:
    header = read_header(batch)
    walk = Walk(header, plain_section(memoryview(batch), header, 1 << 20), rules)
    while walk.step(step):
        pass
    return walk


@given(codecs, codecs, rows)
def test_rewriting_keeps_offsets_times_keys_values_and_headers(
    source: int, target: int, wanted: Rows
) -> None:
    batch = bytes(build(source, wanted).build())
    header = read_header(batch)
    plain = plain_section(memoryview(batch), header, 1 << 20)
    again = rewrite(header, plain, codec=target, level=None)
    assert verify_crc(again, 0, read_header(again))
    assert list(iterate_records(again)) == list(iterate_records(batch))
    assert list(iterate_records(again)) == [Record(i, *row) for i, row in enumerate(wanted)]


@given(codecs, rows, st.integers(1, 50), st.integers(0, 2**42))
def test_a_walk_finds_what_the_reader_sees(
    codec: int, wanted: Rows, step: int, oldest_ms: int
) -> None:
    walk = walk_all(bytes(build(codec, wanted).build()), Rules(True, oldest_ms), step)
    assert walk.max_timestamp == max(row[0] for row in wanted)
    assert [(fault.record, fault.is_timestamp) for fault in walk.faults] == [
        (i, row[1] is not None)
        for i, row in enumerate(wanted)
        if row[1] is None or row[0] < oldest_ms
    ]


@pytest.mark.thorough
@settings(max_examples=examples(300))
@given(codecs, rows, st.data())
@example(0, [(0, None, None, ())], None)
def test_of_damaged_records_a_walk_accepts_what_the_reader_accepts(
    codec: int, wanted: Rows, data: st.DataObject | None
) -> None:
    """The reader tolerates offsets that jump, which only compaction makes; a walk does not."""
    batch = bytes(build(0, wanted).build())
    plain = bytearray(batch[HEADER_BYTES:])
    if data is not None:
        for _ in range(data.draw(st.integers(0, 3))):
            plain[data.draw(st.integers(0, len(plain) - 1))] = data.draw(st.integers(0, 255))
        plain = plain[: len(plain) - data.draw(st.integers(0, 3))]
    header = read_header(batch)._replace(attributes=codec)
    damaged = seal(header, plain if codec == 0 else compress(codec, plain))
    try:
        seen = list(iterate_records(damaged))
    except CorruptData:
        seen = None
    if seen is not None and [record.offset for record in seen] != list(range(len(seen))):
        seen = None
    try:
        walk_all(damaged, Rules(), 7)
        accepts = True
    except CorruptData:
        accepts = False
    assert accepts == (seen is not None)
