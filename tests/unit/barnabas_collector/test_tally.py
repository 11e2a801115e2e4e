"""Losses are counted, and their reasons are named (LG-2)."""

from __future__ import annotations

import pytest

from barnabas_collector.tally import Tally


def test_a_number_and_its_words(caplog: pytest.LogCaptureFixture) -> None:
    Tally("line was lost", "lines were lost").add(1)
    Tally("line was lost", "lines were lost").add(2, "no room")
    assert [each.getMessage() for each in caplog.records] == [
        "1 line was lost",
        "2 lines were lost: no room",
    ]


def test_lg_2_no_reason_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    """LG-2: what happens between two warnings is in the next one, the most frequent first."""
    tally = Tally("line was lost", "lines were lost")
    tally.add(1, "first")
    for why in ("b", "a", "a", "c", "d", "d", "e"):
        tally.add(1, why)
    assert len(caplog.records) == 1
    tally.log_rest()
    tally.log_rest()
    (last,) = caplog.records[1:]
    assert last.getMessage() == (
        "8 lines were lost: a (2 times); d (2 times); b (1 time); and 2 for other reasons"
    )
