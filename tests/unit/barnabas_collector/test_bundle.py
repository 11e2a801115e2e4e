"""Batches of what was received are those that any client would have made of the same records."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.records.batch import HEADER_BYTES
from barnabas.records.compression import LZ4, NONE
from barnabas.records.record import iterate_records
from barnabas_collector.bundle import Bundle, Origin, encode_bundles, pack

NOW_MS = 1_700_000_000_000
ORIGINS = [
    Origin(b"", ()),
    Origin(b"key", (("host", b"h"),)),
    Origin(b"key" * 50, (("host", b"h" * 200), ("empty", b""), ("none", None), ("ü", b"\xff"))),
]
BUNDLES = st.lists(
    st.builds(
        Bundle,
        st.sampled_from(ORIGINS),
        st.lists(st.binary(max_size=40) | st.just(b"x" * 300), min_size=1, max_size=30),
    ),
    max_size=8,
)


@given(BUNDLES, st.integers(1, 4_000), st.sampled_from([NONE, LZ4]))
def test_records_are_read_back(bundles: list[Bundle], most_bytes: int, codec: int) -> None:
    batches = [encode_bundles(each, codec, NOW_MS) for each in pack(bundles, most_bytes)]
    records = [record for batch in batches for record in iterate_records(batch)]
    assert [(each.value, each.key, each.headers, each.timestamp) for each in records] == [
        (text, bundle.origin.key, tuple(bundle.origin.headers), NOW_MS)
        for bundle in bundles
        for text in bundle.texts
    ]


@given(BUNDLES, st.integers(1, 4_000))
def test_a_batch_is_no_larger_than_it_may_be_or_has_one_message(
    bundles: list[Bundle], most_bytes: int
) -> None:
    for batch in pack(bundles, most_bytes):
        size_bytes = len(encode_bundles(batch, NONE, NOW_MS)) - HEADER_BYTES
        assert size_bytes <= most_bytes or sum(bundle.count for bundle in batch) == 1


@given(BUNDLES)
def test_what_fits_is_one_batch(bundles: list[Bundle]) -> None:
    assert len([*pack(bundles, 10**9)]) == min(1, len(bundles))


def test_many_short_and_a_long_one() -> None:
    """Their numbers and lengths have varints of three bytes, which are not looked up."""
    texts = [b""] * 20_000 + [b"x" * 200_000]
    (batch,) = pack([Bundle(ORIGINS[1], texts)], 10**7)
    records = [*iterate_records(encode_bundles(batch, LZ4, NOW_MS))]
    assert [each.value for each in records] == texts
    assert [each.offset for each in records] == [*range(20_001)]


def test_what_was_cut_is_counted_as_it_came() -> None:
    assert Bundle(ORIGINS[0], [b"ab"], 7).came_bytes == 7
    assert Bundle(ORIGINS[0], [b"ab"], 7).is_cut and not Bundle(ORIGINS[0], [b"ab"]).is_cut
    assert not Bundle(ORIGINS[0], [b"ab", b"c"]).is_cut
