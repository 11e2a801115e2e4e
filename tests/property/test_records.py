"""Record batches: whatever is built is read, by us and by others; whatever is read is harmless."""

from __future__ import annotations

from aiokafka.record.memory_records import (  # type: ignore[import-untyped]
    MemoryRecords as AioRecords,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.memory_records import (  # type: ignore[import-untyped]
    MemoryRecords,
    MemoryRecordsBuilder,
)

from barnabas.errors import CorruptData
from barnabas.records.batch import iterate_batches
from barnabas.records.compression import CODEC_NAMES
from barnabas.records.record import Record, iterate_records
from tests.kit.effort import examples
from tests.kit.storage.batches import Rows, build, codecs, rows


@given(codecs, rows, st.integers(0, 2**50))
def test_st_1_what_is_built_is_read(codec: int, rows: Rows, base_offset: int) -> None:
    batch = build(codec, rows).build(base_offset)
    assert list(iterate_records(batch)) == [
        Record(base_offset + i, *row) for i, row in enumerate(rows)
    ]


@settings(max_examples=examples(50))
@given(codecs, rows)
def test_others_read_what_we_build(codec: int, rows: Rows) -> None:
    batch = build(codec, rows).build()
    wanted = [(i, *row[:3], list(row[3])) for i, row in enumerate(rows)]
    for reader in (MemoryRecords(batch), AioRecords(batch)):
        found = reader.next_batch()
        assert found.validate_crc()
        assert [
            (r.offset, r.timestamp, r.key, r.value, [(k, v) for k, v in r.headers]) for r in found
        ] == wanted


@settings(max_examples=examples(50))
@given(codecs, rows)
def test_we_read_what_others_build(codec: int, rows: Rows) -> None:
    theirs = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=10**6)
    for timestamp, key, value, pairs in rows:
        theirs.append(timestamp, key, value, list(pairs))
    theirs.close()
    found = list(iterate_records(theirs.buffer()))
    assert found == [Record(i, *row) for i, row in enumerate(rows)], CODEC_NAMES[codec]


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_give_records_or_corrupt_data(data: bytes, check_crc: bool) -> None:
    try:
        list(iterate_records(data, check_crc=check_crc, limit_bytes=10_000))
    except CorruptData:
        return


@given(codecs, rows, st.data())
def test_damaged_batches_give_records_or_corrupt_data(
    codec: int, rows: Rows, data: st.DataObject
) -> None:
    batch = bytearray(build(codec, rows).build())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(8, len(batch) - 1))
        batch[at] = data.draw(st.integers(0, 255))
    del batch[data.draw(st.integers(60, len(batch))) :]
    try:
        list(iterate_records(batch, check_crc=False, limit_bytes=1_000_000))
    except CorruptData:
        return


@given(st.lists(rows, min_size=1, max_size=4), st.data())
def test_a_torn_tail_costs_only_itself(batches: list[Rows], data: st.DataObject) -> None:
    whole = [build(0, rows).build() for rows in batches]
    log = b"".join(whole)
    cut = data.draw(st.integers(0, len(log)))
    end = 0
    kept = 0
    for batch in whole:
        end += len(batch)
        kept += end <= cut
    assert len(list(iterate_batches(log[:cut]))) == kept
