"""UX-2: which options of `barnabas produce` leave it to us what a batch is; batches of values."""

from __future__ import annotations

import pytest
from hypothesis import given as given_any
from hypothesis import strategies as st

from barnabas.cli.records.block_sender import MOST_RECORDS, batches_of, encode_values, suits
from barnabas.records.compression import CODEC_NAMES
from barnabas.records.record import BatchBuilder

TIME_MS = 1_760_000_000_000


@pytest.mark.parametrize(
    ("given", "suited"),
    [
        ({}, True),
        ({"linger_ms": "5", "batch_size": "100000"}, True),
        ({"batch_size": "16"}, False),
        ({"partitioner_class": "round-robin"}, False),
        ({"max_request_size": "1000"}, False),
        ({"interceptor_classes": "some.module.Audit"}, False),
        ({"value_serializer": "json"}, False),
    ],
)
def test_records_that_are_looked_at_one_by_one_are_no_blocks(
    given: dict[str, str], suited: bool
) -> None:
    assert suits({"batch_size": 65_536, **given}, given) == suited


def built(values: list[bytes], codec: int) -> bytes:
    builder = BatchBuilder(codec)
    for value in values:
        builder.append(TIME_MS, None, value)
    return builder.build()


@given_any(st.lists(st.binary(max_size=200), min_size=1, max_size=100))
def test_a_batch_is_the_builders_to_the_byte(values: list[bytes]) -> None:
    assert encode_values(values, TIME_MS) == built(values, 0)


@pytest.mark.parametrize("codec", range(len(CODEC_NAMES)))
def test_a_full_batch_with_every_codec(codec: int) -> None:
    values = [b"x" * (number % 9_000) for number in range(MOST_RECORDS)]
    assert encode_values(values, TIME_MS, codec) == built(values, codec)


@given_any(st.lists(st.binary(max_size=30)), st.integers(1, 100))
def test_values_are_cut_in_order_and_below_the_limit(values: list[bytes], most: int) -> None:
    cut = list(batches_of(values, most))
    assert [value for part in cut for value in part] == values
    assert all(sum(map(len, part)) <= most or len(part) == 1 for part in cut)


def test_no_batch_has_more_records_than_it_may() -> None:
    cut = list(batches_of([b""] * 10_000, 1_000))
    assert [len(part) for part in cut] == [4_096, 4_096, 1_808]
