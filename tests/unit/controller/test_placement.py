"""TP-7: where replicas go."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.controller.placement import place, place_more
from barnabas.errors import InvalidPartitions, InvalidReplicationFactor


def _brokers(count: int) -> dict[int, str | None]:
    return dict.fromkeys(range(count))


def test_the_example_of_the_textbook() -> None:
    """TP-7: 10 partitions, 5 brokers, 3 replicas, start and shift 0."""
    assert place(_brokers(5), 10, 3, 0, 0) == {
        0: [0, 1, 2],
        1: [1, 2, 3],
        2: [2, 3, 4],
        3: [3, 4, 0],
        4: [4, 0, 1],
        5: [0, 2, 3],
        6: [1, 3, 4],
        7: [2, 4, 0],
        8: [3, 0, 1],
        9: [4, 1, 2],
    }


def test_start_and_shift_turn_the_ring() -> None:
    """TP-7: leaders begin at `start`, second replicas at a distance of `shift` more."""
    assert place(_brokers(5), 3, 3, 2, 0) == {0: [2, 3, 4], 1: [3, 4, 0], 2: [4, 0, 1]}
    assert place(_brokers(5), 3, 3, 0, 1) == {0: [0, 2, 3], 1: [1, 3, 4], 2: [2, 4, 0]}
    assert place(_brokers(5), 2, 2, 4, 3) == {0: [4, 3], 1: [0, 4]}


def test_racks_alternate() -> None:
    """TP-7: with as many replicas as racks each rack has one, and the ring goes on as without."""
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert place(racks, 7, 3, 0, 0) == {
        0: [0, 3, 1],
        1: [3, 1, 5],
        2: [1, 5, 4],
        3: [5, 4, 2],
        4: [4, 2, 0],
        5: [2, 0, 3],
        6: [0, 4, 2],
    }


def test_a_rack_that_only_some_have_does_not_count() -> None:
    assert place({0: "a", 1: "a", 2: None}, 3, 2, 0, 0) == {0: [0, 1], 1: [1, 2], 2: [2, 0]}


def test_one_broker_has_everything() -> None:
    assert place({7: None}, 3, 1, 0, 4) == {0: [7], 1: [7], 2: [7]}


@pytest.mark.parametrize("partitions", [0, -1])
def test_no_partitions_is_refused(partitions: int) -> None:
    """TP-1"""
    with pytest.raises(InvalidPartitions):
        place(_brokers(3), partitions, 1, 0, 0)


@pytest.mark.parametrize("replication_factor", [0, -1, 4])
def test_a_replication_factor_that_cannot_be_is_refused(replication_factor: int) -> None:
    """TP-5"""
    with pytest.raises(InvalidReplicationFactor):
        place(_brokers(3), 1, replication_factor, 0, 0)


@given(
    st.dictionaries(st.integers(0, 30), st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9),
    st.booleans(),
    st.integers(1, 40),
    st.integers(0, 20),
    st.integers(0, 20),
    st.data(),
)
def test_replicas_spread(
    racks: dict[int, str], with_racks: bool, partitions: int, start: int, shift: int,
    draw: st.DataObject,
) -> None:  # fmt: skip
    factor = draw.draw(st.integers(1, len(racks)))
    given_racks: dict[int, str | None] = {b: r if with_racks else None for b, r in racks.items()}
    placed = place(given_racks, partitions, factor, start, shift)
    assert list(placed) == list(range(partitions))
    for replicas in placed.values():
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(racks)
        if with_racks:
            distinct = len({racks[broker] for broker in replicas})
            assert distinct == min(factor, len(set(racks.values()))), "as many racks as possible"
    leaders = Counter(replicas[0] for replicas in placed.values())
    counts = [leaders[broker] for broker in racks]
    assert max(counts) - min(counts) <= 1, "leaders spread evenly"


@given(
    st.dictionaries(
        st.integers(0, 30), st.none() | st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9
    ),
    st.tuples(st.integers(1, 30), st.integers(1, 30)),
    st.tuples(st.integers(0, 20), st.integers(0, 20)),
    st.data(),
)
def test_growth_goes_on_where_the_topic_began(
    racks: dict[int, str | None],
    counts: tuple[int, int],
    origin: tuple[int, int],
    draw: st.DataObject,
) -> None:
    """TP-5, TP-7: leaders are those of a topic that had them all from the beginning."""
    factor = draw.draw(st.integers(1, len(racks)))
    first, added = counts
    existing = place(racks, first, factor, *origin)
    grown = place_more(racks, existing, first + added)
    assert list(grown) == list(range(first, first + added))
    for replicas in grown.values():
        assert len(set(replicas)) == factor
        assert set(replicas) <= set(racks)
    if None in racks.values():  # the ring is that of the sorted ids
        whole = place(racks, first + added, factor, *origin)
        assert [grown[n][0] for n in grown] == [whole[n][0] for n in grown]
        leaders = Counter(replicas[0] for replicas in (existing | grown).values())
        counts_by_broker = [leaders[broker] for broker in racks]
        assert max(counts_by_broker) - min(counts_by_broker) <= 1
    elif len(set(racks.values())) >= factor:
        for replicas in grown.values():
            assert len({racks[broker] for broker in replicas}) == factor


def test_growth_as_kafka_places_it() -> None:
    """TP-7: the distance begins with the place of the first partition's first replica."""
    existing = place(_brokers(5), 3, 3, 2, 0)
    assert existing == {0: [2, 3, 4], 1: [3, 4, 0], 2: [4, 0, 1]}
    assert place_more(_brokers(5), existing, 7) == {
        3: [0, 3, 4],
        4: [1, 4, 0],
        5: [2, 1, 3],
        6: [3, 2, 4],
    }


def test_growth_after_the_first_broker_has_gone() -> None:
    """The next one in the ring takes its place, or the first of all."""
    assert place_more(dict.fromkeys([1, 5, 9]), {0: [3]}, 3) == {1: [9], 2: [1]}
    assert place_more(dict.fromkeys([1, 5, 9]), {0: [12]}, 3) == {1: [5], 2: [9]}


def test_growth_with_too_few_brokers() -> None:
    with pytest.raises(InvalidReplicationFactor):
        place_more(_brokers(1), {0: [0, 1]}, 2)
