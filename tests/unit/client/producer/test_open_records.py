"""PR-3: an open batch is encoded at once, to the bytes that a record at a time would give."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.producer.open_records import OpenRecords
from barnabas.records.batch import seal
from barnabas.records.record import BatchBuilder, Headers

blobs = st.none() | st.binary(max_size=5) | st.integers(60, 200).map(bytes)
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
times = st.integers(0, 3) | st.integers(-(2**40), 2**40)


def both(records: list[tuple[int, bytes | None, bytes | None, Headers]]) -> tuple[bytes, bytes]:
    ours, oracle = OpenRecords(0), BatchBuilder()
    for time_ms, key, value, pairs in records:
        ours.append(time_ms, key, value, pairs)
        oracle.append(time_ms, key, value, pairs)
    return seal(*ours.build()), oracle.build()


@given(st.lists(st.tuples(times, blobs, blobs, headers), min_size=1, max_size=80))
def test_any_records_have_the_bytes_of_one_at_a_time(
    records: list[tuple[int, bytes | None, bytes | None, Headers]],
) -> None:
    ours, oracle = both(records)
    assert ours == oracle


@given(st.integers(0, 300), st.integers(1, 200), st.integers(0, 2**41))
def test_values_of_one_size_have_the_bytes_of_one_at_a_time(
    size: int, count: int, time_ms: int
) -> None:
    ours, oracle = both([(time_ms, None, bytes([n % 256]) * size, ()) for n in range(count)])
    assert ours == oracle


def test_places_beyond_a_byte_and_beyond_what_is_kept() -> None:
    ours, oracle = both([(0, None, b"v", ())] * 20_000)
    assert ours == oracle
    ours, oracle = both([(0, None, b"v" * (n % 2), ()) for n in range(20_000)])
    assert ours == oracle
