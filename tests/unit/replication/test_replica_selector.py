"""Which replica a consumer in a rack is sent to (RE-2): what RackAwareReplicaSelector chooses."""

from __future__ import annotations

import pytest

from barnabas.replication.replica_selector import InSync, select_replica

RACKS = {1: "east", 2: "west", 3: "west", 4: None}


def in_sync(broker_id: int, end: int = 10, start: int = 0, caught_up_at_ms: int = 0) -> InSync:
    return InSync(broker_id, start, end, caught_up_at_ms)


@pytest.mark.parametrize(
    ("followers", "chosen"),
    [
        ([], None),
        ([in_sync(1)], None),
        ([in_sync(4)], None),
        ([in_sync(9)], None),
        ([in_sync(1), in_sync(2)], 2),
        ([in_sync(2, end=11), in_sync(3, end=10)], 2),
        ([in_sync(2, end=10), in_sync(3, end=11)], 3),
        ([in_sync(2, caught_up_at_ms=7), in_sync(3, caught_up_at_ms=6)], 2),
        ([in_sync(2, caught_up_at_ms=6), in_sync(3, caught_up_at_ms=7)], 3),
        ([in_sync(2), in_sync(3)], 3),
        ([in_sync(3), in_sync(2)], 3),
    ],
    ids=[
        "none in sync",
        "another rack",
        "no rack",
        "not alive",
        "the rack",
        "the larger end",
        "the larger end, any id",
        "level last",
        "caught up last, any id",
        "the larger id",
        "the larger id, in any order",
    ],
)
def test_re_2_who_is_chosen(followers: list[InSync], chosen: int | None) -> None:
    assert select_replica(5, "west", RACKS, followers) == chosen


@pytest.mark.parametrize(("offset", "chosen"), [(3, None), (4, 2), (10, 2), (11, None)])
def test_re_2_only_who_has_what_is_wanted(offset: int, chosen: int | None) -> None:
    """From its log's start to its end: at the end it waits for what comes."""
    assert select_replica(offset, "west", RACKS, [in_sync(2, start=4, end=10)]) == chosen
