"""Copied batches: as they are if possible, encoded anew if not; always the same records."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.copy.restamp import drafts_of
from barnabas.client.consumer.fetched import AbortedTransaction, Chunk
from barnabas.records.batch import (
    DELETE_HORIZON,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    read_header,
    seal,
    verify_crc,
)
from barnabas.records.control_records import ABORT, Marker, build_marker
from barnabas.records.record import BatchBuilder, Record, iterate_records
from barnabas.types import TopicPartition

NAME = TopicPartition("orders", 0)
HEADERS = (("a", b"1"), ("a", None))

Kept = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def batch(
    base_offset: int, count: int, codec: int = 0, value: bytes = b"v" * 9, **more: Any
) -> bytes:
    builder = BatchBuilder(codec, **more)
    for number in range(count):
        builder.append(1000 + number, b"%d" % number, value, HEADERS if number % 2 else ())
    return builder.build(base_offset)


def sealed(chunk: Chunk) -> tuple[list[bytes], list[int]]:
    """The batches as they are sent, and the offsets of their records in the source."""
    batches: list[bytes] = []
    offsets: list[int] = []
    for draft in drafts_of(chunk):
        parts = cast(list[bytes], draft.seal(7, 3, len(offsets)))
        batches.append(b"".join(map(bytes, parts)))
        assert draft.size_bytes == len(batches[-1])
        offsets += draft.offsets
    return batches, offsets


def chunk_of(
    *batches: bytes, offset: int = 0, aborted: tuple[AbortedTransaction, ...] = ()
) -> Chunk:
    data = b"".join(batches)
    end = max(read_header(each).last_offset for each in batches) + 1
    return Chunk(NAME, offset, memoryview(data), aborted, end)


def kept(records: list[Record]) -> list[Kept]:
    return [(each.timestamp, each.key, each.value, each.headers) for each in records]


def check(chunk: Chunk) -> list[bytes]:
    """The records are those that a consumer sees, and the headers are those of our producer."""
    batches, offsets = sealed(chunk)
    seen = list(chunk.iterate(check_crcs=True))
    assert offsets == [each.offset for each in seen]
    records, sequence = [], 0
    for each in batches:
        header = read_header(each)
        assert verify_crc(each, 0, header)
        assert (header.producer_id, header.producer_epoch) == (7, 3)
        assert header.base_sequence == sequence and header.is_transactional
        assert (header.base_offset, header.is_control) == (0, False)
        assert header.record_count == header.last_offset_delta + 1
        assert not (header.has_log_append_time or header.has_delete_horizon)
        sequence += header.record_count
        records += list(iterate_records(each))
    wanted = [(each.timestamp_ms, each.key, each.value, each.headers) for each in seen]
    assert kept(records) == wanted
    return batches


@pytest.mark.parametrize("codec", range(5))
def test_the_records_of_a_large_batch_are_sent_as_they_are(codec: int) -> None:
    value = bytes(range(256)) * 4
    original = batch(10, 200, codec, value, producer_id=5, producer_epoch=1, base_sequence=9)
    (copied,) = check(chunk_of(original))
    assert copied[HEADER_BYTES:] == original[HEADER_BYTES:]


def test_small_batches_are_joined() -> None:
    (joined,) = check(chunk_of(*(batch(offset, 2) for offset in range(0, 40, 2))))
    assert read_header(joined).record_count == 40


def test_batches_of_different_codecs_are_not_joined() -> None:
    assert len(check(chunk_of(batch(0, 1), batch(1, 1, codec=1), batch(2, 1)))) == 3


def test_a_joined_batch_stays_small_enough() -> None:
    value = b"v" * 100_000
    assert (
        len(
            check(chunk_of(*(batch(offset, 1, 1, value[: 90_000 + offset]) for offset in range(9))))
        )
        > 1
    )


def test_compacted_batches_are_encoded_anew() -> None:
    """A broker refuses produced batches with gaps."""
    original = batch(10, 50, 0, b"v" * 500)
    header = read_header(original)._replace(last_offset_delta=99)
    check(chunk_of(seal(header, original[HEADER_BYTES:])))


def test_the_times_of_the_broker_are_kept() -> None:
    original = batch(10, 50, 0, b"v" * 500)
    header = read_header(original)
    header = header._replace(attributes=LOG_APPEND_TIME, max_timestamp=99_999)
    (copied,) = check(chunk_of(seal(header, original[HEADER_BYTES:])))
    assert read_header(copied).max_timestamp == 99_999


def test_a_delete_horizon_is_left_out() -> None:
    original = batch(10, 50, 0, b"v" * 500)
    header = read_header(original)._replace(attributes=DELETE_HORIZON)
    check(chunk_of(seal(header, original[HEADER_BYTES:])))


def test_records_before_the_position_are_left_out() -> None:
    chunk = chunk_of(batch(0, 50, 0, b"v" * 500), offset=20)
    check(chunk)
    assert sealed(chunk)[1] == list(range(20, 50))


def test_markers_and_aborted_records_are_left_out() -> None:
    mine: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "is_transactional": True}
    marker = build_marker(Marker(3, 0, ABORT, 0), 5, 0)
    chunk = chunk_of(batch(0, 3, **mine), marker, batch(4, 2), aborted=(AbortedTransaction(5, 0),))
    check(chunk)
    assert sealed(chunk)[1] == [4, 5]


@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.integers(0, 4), st.integers(0, 3), st.integers(0, 300)),
        min_size=1,
        max_size=8,
    )
)
def test_whatever_the_batches_the_records_are_the_same(
    shapes: list[tuple[int, int, int, int]],
) -> None:
    batches, offset = [], 0
    for count, codec, gap, size in shapes:
        batches.append(batch(offset, count, codec, b"v" * size))
        offset += count + gap
    batches.append(batch(offset, 1))  # shows that the gap before it is none of the damaged kind
    check(chunk_of(*batches))
