"""What a glance at the first and the last record says of a header (ST-1)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.batch import HEADER_BYTES, read_header
from barnabas.records.plausibility import AHEAD_MS, is_plausible
from barnabas.records.record import BatchBuilder
from tests.kit.storage.batches import Rows, build, lying, of_count, rows
from tests.kit.storage.disk import T0, batch


@pytest.mark.parametrize("size", [0, 1, 57, 58, 59, 100, 8180, 8181, 8182, 8183, 9000, 2_000_000])
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 66, 300])
def test_an_honest_batch_passes(count: int, size: int) -> None:
    if count * size < 10_000_000:
        for step_ms in (0, 1, 70):
            assert is_plausible(memoryview(batch(count, size, step_ms=step_ms)), T0 + 100_000)


@given(rows)
def test_records_in_the_order_of_their_times_pass(wanted: Rows) -> None:
    ordered = sorted(wanted, key=lambda row: row[0])
    honest = memoryview(bytearray(build(0, ordered).build()))
    assert is_plausible(honest, 0)


@given(rows.filter(bool), st.integers(1, 200))
def test_another_number_of_records_does_not_pass(wanted: Rows, count: int) -> None:
    honest = bytes(build(0, wanted).build())
    if count != len(wanted):
        assert not is_plausible(of_count(honest, count), 1 << 60)


@pytest.mark.parametrize("count", [1, 2, 100])
def test_a_time_of_no_record_passes_only_where_it_does_no_harm(count: int) -> None:
    honest = batch(count, step_ms=3)
    newest = read_header(honest).max_timestamp
    assert is_plausible(memoryview(honest), 0), "whatever the clock says, it is the last one's"
    assert not is_plausible(lying(honest, max_timestamp=1 << 62), T0)
    assert not is_plausible(lying(honest, max_timestamp=T0 - 1), T0)
    assert not is_plausible(lying(honest, max_timestamp=newest + 1), newest - AHEAD_MS)
    if count > 1:
        assert is_plausible(lying(honest, max_timestamp=newest + 1), newest + 1 - AHEAD_MS)


def test_times_in_any_order_pass_as_long_as_they_are_not_far_ahead() -> None:
    builder = BatchBuilder()
    for i in range(1000):
        builder.append(T0 + 7919 * i % 1000, None, b"\x02" * 20)
    honest = memoryview(bytearray(builder.build()))
    assert is_plausible(honest, T0)
    assert not is_plausible(honest, T0 - 2 * AHEAD_MS), "the largest is neither first nor last"


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_of_compressed_records_only_the_times_are_known(codec: int) -> None:
    honest = batch(5, codec=codec, step_ms=1)
    assert is_plausible(memoryview(honest), T0)
    assert not is_plausible(memoryview(honest), T0 - 2 * AHEAD_MS)
    assert not is_plausible(lying(honest, max_timestamp=T0 - 1), T0)


def test_a_codec_that_is_not_the_records_does_not_pass() -> None:
    for codec in (1, 2, 3, 4):
        assert not is_plausible(lying(batch(5), attributes=codec), T0)
        assert not is_plausible(lying(batch(5, codec=codec), attributes=0), T0)


@given(st.binary(max_size=200), st.integers(-2, 50))
def test_any_bytes_get_an_answer(records: bytes, count: int) -> None:
    is_plausible(memoryview(bytearray(records)), T0)
    is_plausible(of_count(batch()[:HEADER_BYTES] + records, count), T0)
