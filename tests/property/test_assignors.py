"""AS-2 to AS-6: what holds for every group, checked against exhaustive search where it is small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.consumer.assignors import ASSIGNORS
from barnabas.client.consumer.group_protocol import GroupAssignment, GroupMember
from barnabas.types import TopicPartition
from tests.kit.effort import examples

TOPICS = ("a", "b", "c")


@st.composite
def groups(
    draw: st.DrawFn, most_partitions: int = 6, names: str = "ABCDE"
) -> tuple[dict[str, int], list[GroupMember]]:
    """Topics, and members with any subscriptions, that may claim anything in some generation."""
    topics = {name: draw(st.integers(0, most_partitions)) for name in TOPICS}
    present = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    anything = st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, most_partitions))
    return topics, [
        GroupMember(
            name,
            tuple(draw(st.lists(st.sampled_from(TOPICS), unique=True))),
            tuple(draw(st.lists(anything, max_size=8, unique=True))),
            draw(st.integers(-1, 2)),
        )
        for name in present
    ]


def partitions_of(topics: Mapping[str, int]) -> list[TopicPartition]:
    return [TopicPartition(name, number) for name in topics for number in range(topics[name])]


def takers(partition: TopicPartition, members: Sequence[GroupMember]) -> list[str]:
    return [member.member_id for member in members if partition.topic in member.topics]


def owners(assignment: GroupAssignment) -> dict[TopicPartition, str]:
    owner: dict[TopicPartition, str] = {}
    for name, partitions in assignment.items():
        for partition in partitions:
            assert partition not in owner, f"{partition} has two owners"
            owner[partition] = name
    return owner


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
@given(groups())
@settings(max_examples=examples(40))
def test_every_partition_has_exactly_one_subscribed_owner(
    name: str, group: tuple[dict[str, int], list[GroupMember]]
) -> None:
    """AS-2, AS-3, AS-4: and no member gets what is not there or not subscribed."""
    topics, members = group
    assignment = ASSIGNORS[name].assign(topics, members)
    assert set(assignment) == {member.member_id for member in members}
    owner = owners(assignment)
    for partition in partitions_of(topics):
        possible = takers(partition, members)
        assert (owner.pop(partition, None) in possible) if possible else partition not in owner
    assert not owner


@given(groups())
@settings(max_examples=examples(40))
def test_the_order_of_members_does_not_matter(
    group: tuple[dict[str, int], list[GroupMember]],
) -> None:
    """AS-2 to AS-6: a new leader decides as the old one did."""
    topics, members = group
    for assignor in ASSIGNORS.values():
        again = assignor.assign(dict(reversed(topics.items())), members[::-1])
        assert assignor.assign(topics, members) == again


@given(groups(most_partitions=2, names="ABC"))
@settings(max_examples=examples(40))
def test_sticky_is_as_even_as_can_be(group: tuple[dict[str, int], list[GroupMember]]) -> None:
    """AS-4, AS-5: no assignment at all has a smaller sum of squares."""
    topics, members = group
    possible = [takers(partition, members) for partition in partitions_of(topics)]
    best = min(
        sum(chosen.count(member.member_id) ** 2 for member in members)
        for chosen in product(*filter(None, possible))
    )
    assignment = ASSIGNORS["sticky"].assign(topics, members)
    assert sum(len(partitions) ** 2 for partitions in assignment.values()) == best


@given(groups())
@settings(max_examples=examples(40))
def test_nothing_moves_when_nothing_changed(
    group: tuple[dict[str, int], list[GroupMember]],
) -> None:
    """AS-4, AS-6: members that come back with what they were given keep exactly that."""
    topics, members = group
    for name in ("sticky", "cooperative-sticky"):
        first = ASSIGNORS["sticky"].assign(topics, members)
        back = [
            member._replace(owned=tuple(first[member.member_id]), generation=9)
            for member in members
        ]
        assert owners(ASSIGNORS[name].assign(topics, back)) == owners(first)


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=5),
    st.integers(0, 3),
    st.integers(0, 3),
    st.integers(0, 12),
)
def test_sticky_moves_no_more_than_balance_needs(
    held: list[int], gone: int, newcomers: int, more: int
) -> None:
    """AS-4: equal subscriptions; members go and come, the topic grows."""
    total = sum(held)
    starts = [sum(held[:place]) for place in range(len(held))]
    old = [
        GroupMember(
            f"m{place}",
            ("t",),
            tuple(TopicPartition("t", start + number) for number in range(count)),
            1,
        )
        for place, (start, count) in enumerate(zip(starts, held, strict=True))
    ]
    members = [
        *old[min(gone, len(old) - 1) :],
        *(GroupMember(f"n{n}", ("t",)) for n in range(newcomers)),
    ]
    assignment = ASSIGNORS["sticky"].assign({"t": total + more}, members)
    counts = [len(each) for each in assignment.values()]
    assert max(counts) - min(counts) <= 1
    share, rest = divmod(total + more, len(members))
    owned = sorted((len(member.owned) for member in members), reverse=True)
    most_kept = sum(min(count, share + (place < rest)) for place, count in enumerate(owned))
    kept = sum(len(set(member.owned) & set(assignment[member.member_id])) for member in members)
    assert kept == most_kept


@given(groups())
@settings(max_examples=examples(40))
def test_cooperative_never_gives_what_another_still_has(
    group: tuple[dict[str, int], list[GroupMember]],
) -> None:
    """AS-6: and once all have given up what they lost, the rebalance that follows is sticky's."""
    topics, members = group
    assignment = ASSIGNORS["cooperative-sticky"].assign(topics, members)
    owners(assignment)
    for member in members:
        for partition in assignment[member.member_id]:
            others = [each for each in members if each is not member and partition in each.owned]
            assert partition in member.owned or not others
    kept = [
        member._replace(owned=tuple(assignment[member.member_id]), generation=3)
        for member in members
    ]
    assert ASSIGNORS["cooperative-sticky"].assign(topics, kept) == ASSIGNORS["sticky"].assign(
        topics, kept
    )
