"""The accounting of `verify` against plain sets."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.verify.account import CHUNK, Findings, Ledger, Multisets, total

OFFSETS = st.lists(st.lists(st.integers(-5, 40), max_size=12), max_size=6)


@given(
    st.integers(0, 10),
    st.integers(0, 25),
    st.sets(st.integers(0, 34), max_size=30),
    OFFSETS,
    st.integers(1, 9),
)
def test_a_ledger_is_what_plain_sets_say(
    start: int, length: int, records: set[int], batches: list[list[int]], chunk: int
) -> None:
    bounds = range(start, start + length)
    exists = sorted(offset for offset in records if offset in bounds)
    ledger = Ledger(bounds, chunk)
    for offset in exists:
        ledger.records(np.array([offset], np.int64))
    for batch in batches:
        ledger.rows(np.array(batch, np.int64))
    every = [offset for batch in batches for offset in batch]
    rows = Counter(offset for offset in every if offset in bounds)
    lost = [offset for offset in exists if not rows[offset]]
    doubled = [offset for offset in exists if rows[offset] > 1]
    unfounded = sorted(set(rows) - set(exists))
    assert ledger.findings(3) == Findings(
        records=len(exists),
        rows=rows.total(),
        lost=len(lost),
        doubled=len(doubled),
        extra_rows=rows.total() - len(rows),
        unfounded=len(unfounded),
        earlier=sum(offset < start for offset in every),
        later=sum(offset >= start + length for offset in every),
        examples={"lost": lost[:3], "doubled": doubled[:3], "unfounded": unfounded[:3]},
    )


VALUES = st.lists(st.one_of(st.none(), st.binary(max_size=1)), max_size=20)


@given(VALUES, VALUES)
def test_multisets_are_what_counters_say(
    records: list[bytes | None], rows: list[bytes | None]
) -> None:
    compared = Multisets()
    compared.records(records[:5])
    compared.records(records[5:])
    compared.rows(rows)
    found, suspects = compared.findings()
    given_, had = Counter(records), Counter(rows)
    assert found == Findings(
        records=len(records),
        rows=len(rows),
        lost=(given_ - had).total(),
        doubled=sum(had[value] > given_[value] for value in given_),
        extra_rows=sum(max(had[value] - given_[value], 0) for value in given_),
        unfounded=sum(had[value] for value in had if value not in given_),
    )
    assert set(suspects.lost) == {hash(value) for value in given_ - had}
    assert set(suspects.unfounded) == {hash(value) for value in had if value not in given_}


def test_what_was_copied_in_order_takes_no_memory() -> None:
    ledger = Ledger(range(10, 10 + 20 * CHUNK))
    for start in range(10, 10 + 20 * CHUNK, 10_000):
        ledger.records(np.arange(start, min(start + 10_000, 10 + 20 * CHUNK)))
    assert ledger.kept_bytes() <= 2 * CHUNK
    ledger.rows(np.arange(10, 10 + 20 * CHUNK))
    assert ledger.kept_bytes() <= 2 * CHUNK
    ledger.rows(np.array([5 * CHUNK + 1]))
    found = ledger.findings(5)
    assert (found.records, found.lost, found.doubled) == (20 * CHUNK, 0, 1)
    assert found.examples["doubled"] == [5 * CHUNK + 1]


def test_several_partitions_are_summed() -> None:
    assert total([]) == Findings()
    one = Findings(records=2, rows=3, extra_rows=1, examples={"lost": [1]})
    assert total([one, one]) == Findings(records=4, rows=6, extra_rows=2)
