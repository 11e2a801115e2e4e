"""GC-3: the last replicated offset of a place, also where a transaction's crosses plain commits."""

from __future__ import annotations

from barnabas.coordinator.unreplicated import Place, Stored, Unreplicated

PLACE: Place = ("t", 0)
NAME = ("g", PLACE)


def stored(log_offset: int) -> Stored:
    return (100 + log_offset, -1, "", 0, -1, log_offset)


def test_a_transaction_that_ends_between_two_commits_counts_gc_3() -> None:
    """Its record at 2 and its marker at 3 are replicated, and the commit at 4 is not."""
    offsets = Unreplicated()
    offsets.add(1, NAME, None, stored(1), high_watermark=0)
    offsets.add(4, NAME, stored(1), stored(4), high_watermark=0)
    assert offsets.before("g", 1) == {PLACE: None}
    offsets.on_committed("g", PLACE, stored(2))
    assert offsets.before("g", 4) == {PLACE: stored(2)}
    assert offsets.before("g", 5) == {}


def test_an_older_transaction_changes_nothing_gc_3() -> None:
    offsets = Unreplicated()
    offsets.add(5, NAME, stored(3), stored(5), high_watermark=5)
    offsets.on_committed("g", PLACE, stored(2))
    assert offsets.before("g", 5) == {PLACE: stored(3)}
    offsets.on_committed("g", ("t", 1), stored(2))
    assert offsets.before("g", 5) == {PLACE: stored(3)}
