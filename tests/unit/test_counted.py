"""Numbers and their nouns agree."""

from __future__ import annotations

from barnabas.counted import counted
from barnabas.similar_names import did_you_mean


def test_a_count_and_its_noun() -> None:
    assert counted(0, "record") == "0 records"
    assert counted(1, "record") == "1 record"
    assert counted(2_000, "record") == "2,000 records"
    assert counted(2, "batch", "batches") == "2 batches"


def test_a_name_that_is_meant() -> None:
    assert did_you_mean("topic", ["topics", "groups"]) == "did you mean topics?"
    assert did_you_mean("x", ["topics", "groups"]) == ""
    assert did_you_mean("order1", ["orders", "order2"]) == "did you mean orders, or order2?"
