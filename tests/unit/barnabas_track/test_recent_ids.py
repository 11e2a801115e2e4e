"""BT-1: how many ids are remembered, and which ones are forgotten."""

from __future__ import annotations

import pytest

from barnabas_track.recent_ids import RecentIds


@pytest.mark.parametrize("most", [1, 2, 63, 64, 1_000])
def test_the_latest_ids_are_remembered_and_few_others(most: int) -> None:
    known: RecentIds[int] = RecentIds(most)
    for number in range(10 * most):
        known.remember(str(number), number)
        assert all(str(each) in known for each in range(max(0, number + 1 - most), number + 1))
        assert len(known) <= most + most // 64


def test_an_id_that_was_removed_becomes_the_latest_one_again() -> None:
    known: RecentIds[None] = RecentIds(3)
    for id_ in "abc":
        known.remember(id_, None)
    del known["a"]
    for id_ in "ad":
        known.remember(id_, None)
    assert list(known) == ["c", "a", "d"]
