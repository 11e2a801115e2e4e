"""AS-2 to AS-6: the examples, to the partition."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from barnabas.client.consumer.assignors import ASSIGNORS, chosen_assignors, deal
from barnabas.client.consumer.group_protocol import GroupAssignment, GroupMember
from barnabas.errors import ConfigError
from barnabas.types import TopicPartition


def named(text: str) -> TopicPartition:
    """`t0p1` -> partition 1 of t0."""
    topic, _, number = text.rpartition("p")
    return TopicPartition(topic, int(number))


def shown(assignment: GroupAssignment) -> dict[str, str]:
    return {
        member: " ".join(f"{topic}p{number}" for topic, number in partitions)
        for member, partitions in assignment.items()
    }


def subscribers(**topics: str) -> list[GroupMember]:
    """`C0="t0 t1"` -> a member that is subscribed to both."""
    return [GroupMember(name, tuple(text.split())) for name, text in topics.items()]


def assign(name: str, topics: Mapping[str, int], members: list[GroupMember]) -> dict[str, str]:
    forwards = ASSIGNORS[name].assign(topics, members)
    backwards = ASSIGNORS[name].assign(dict(reversed(topics.items())), list(reversed(members)))
    assert forwards == backwards, "the order of members and topics must not matter"
    return shown(forwards)


def after(members: list[GroupMember], assigned: Mapping[str, str]) -> list[GroupMember]:
    """The members as they join again with what they were assigned."""
    return [
        member._replace(owned=tuple(map(named, assigned[member.member_id].split())), generation=1)
        for member in members
    ]


def without(name: str, members: list[GroupMember]) -> list[GroupMember]:
    return [member for member in members if member.member_id != name]


# ---- range ----


def test_range_gives_each_member_a_run_and_the_first_ones_more() -> None:
    """AS-2: 10 partitions, 3 members."""
    members = subscribers(C0="t", C1="t", C2="t")
    assert assign("range", {"t": 10}, members) == {
        "C0": "tp0 tp1 tp2 tp3",
        "C1": "tp4 tp5 tp6",
        "C2": "tp7 tp8 tp9",
    }


@pytest.mark.parametrize("count", [1, 2, 7])
def test_range_favours_the_first_member_in_every_topic(count: int) -> None:
    """AS-2: k topics of 10 partitions: 4k for C0, 3k for the others."""
    topics = {f"t{number}": 10 for number in range(count)}
    text = " ".join(topics)
    assigned = ASSIGNORS["range"].assign(topics, subscribers(C0=text, C1=text, C2=text))
    assert {name: len(given) for name, given in assigned.items()} == {
        "C0": 4 * count,
        "C1": 3 * count,
        "C2": 3 * count,
    }


def test_range_over_two_topics() -> None:
    """AS-2: two topics of 3 partitions, 2 members."""
    members = subscribers(C1="T0 T1", C2="T0 T1")
    assert assign("range", {"T0": 3, "T1": 3}, members) == {
        "C1": "T0p0 T0p1 T1p0 T1p1",
        "C2": "T0p2 T1p2",
    }


def test_range_gives_a_topic_to_its_subscribers_only() -> None:
    """AS-2: C1 subscribed to T0 only, C2 to T1 only."""
    members = subscribers(C1="T0", C2="T1")
    assert assign("range", {"T0": 3, "T1": 3}, members) == {
        "C1": "T0p0 T0p1 T0p2",
        "C2": "T1p0 T1p1 T1p2",
    }


# ---- round-robin ----


def test_roundrobin_deals_in_turn_and_goes_on_with_the_next_topic() -> None:
    """AS-3: `test` with 10 partitions, 3 members; a second topic of 10."""
    assert assign("roundrobin", {"test": 10}, subscribers(C0="test", C1="test", C2="test")) == {
        "C0": "testp0 testp3 testp6 testp9",
        "C1": "testp1 testp4 testp7",
        "C2": "testp2 testp5 testp8",
    }
    both = "test test2"
    assigned = assign(
        "roundrobin", {"test": 10, "test2": 10}, subscribers(C0=both, C1=both, C2=both)
    )
    assert assigned["C1"].split()[4] == "test2p3" and assigned["C1"].split()[3] == "test2p0"
    assert [len(given.split()) for given in assigned.values()] == [7, 7, 6]


def test_the_dealing_itself() -> None:
    """AS-3: the orders 5 8 2 4 3 6 7 9 0 1 and C2 C0 C1 are given (Kafka 0.8 sorted by hash)."""
    dealt = deal(
        [TopicPartition("t", number) for number in (5, 8, 2, 4, 3, 6, 7, 9, 0, 1)],
        subscribers(C2="t", C0="t", C1="t"),
    )
    assert {name: [each.partition for each in given] for name, given in dealt.items()} == {
        "C2": [5, 4, 7, 1],
        "C0": [8, 3, 9],
        "C1": [2, 6, 0],
    }


def test_roundrobin_over_two_topics() -> None:
    """AS-3: C0 and C1 both on t0 and t1, 3 partitions each."""
    members = subscribers(C0="t0 t1", C1="t0 t1")
    assert assign("roundrobin", {"t0": 3, "t1": 3}, members) == {
        "C0": "t0p0 t0p2 t1p1",
        "C1": "t0p1 t1p0 t1p2",
    }


def test_roundrobin_skips_members_that_do_not_subscribe() -> None:
    """AS-3: C0:{T0}, C1:{T0,T1}, C2:{T0,T1,T2}, 3 partitions each."""
    members = subscribers(C0="T0", C1="T0 T1", C2="T0 T1 T2")
    assert assign("roundrobin", {"T0": 3, "T1": 3, "T2": 3}, members) == {
        "C0": "T0p0",
        "C1": "T0p1 T1p0 T1p2",
        "C2": "T0p2 T1p1 T2p0 T2p1 T2p2",
    }


# ---- sticky ----

FOUR_TOPICS = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
ALL_FOUR = "t0 t1 t2 t3"


def test_sticky_moves_only_what_has_to_move() -> None:
    """AS-4: C0, C1, C2 on t0..t3 of 2 partitions; then C1 leaves."""
    members = subscribers(C0=ALL_FOUR, C1=ALL_FOUR, C2=ALL_FOUR)
    first = assign("sticky", FOUR_TOPICS, members)
    assert first == {"C0": "t0p0 t1p1 t3p0", "C1": "t0p1 t2p0 t3p1", "C2": "t1p0 t2p1"}
    left = without("C1", after(members, first))
    assert assign("roundrobin", FOUR_TOPICS, left) == {
        "C0": "t0p0 t1p0 t2p0 t3p0",
        "C2": "t0p1 t1p1 t2p1 t3p1",
    }
    assert assign("sticky", FOUR_TOPICS, left) == {
        "C0": "t0p0 t1p1 t3p0 t2p0",
        "C2": "t1p0 t2p1 t0p1 t3p1",
    }


def test_sticky_with_different_subscriptions() -> None:
    """AS-5: t0, t1, t2 of 1, 2, 3 partitions; then C0 leaves."""
    topics = {"t0": 1, "t1": 2, "t2": 3}
    members = subscribers(C0="t0", C1="t0 t1", C2="t0 t1 t2")
    dealt = assign("roundrobin", topics, members)
    assert dealt == {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"}
    first = assign("sticky", topics, members)
    assert first == {"C0": "t0p0", "C1": "t1p0 t1p1", "C2": "t2p0 t2p1 t2p2"}
    left = without("C0", members)
    dealt_again = assign("roundrobin", topics, left)
    assert dealt_again == {"C1": "t0p0 t1p1", "C2": "t1p0 t2p0 t2p1 t2p2"}
    then = assign("sticky", topics, without("C0", after(members, first)))
    assert then == {"C1": "t1p0 t1p1 t0p0", "C2": "t2p0 t2p1 t2p2"}
    assert (_kept(dealt, dealt_again), _kept(first, then)) == (3, 5), "of five partitions"


def _kept(before: Mapping[str, str], now: Mapping[str, str]) -> int:
    return sum(len(set(before[name].split()) & set(given.split())) for name, given in now.items())


def test_sticky_evens_out_along_a_chain() -> None:
    """AS-4: C0 and C2 share no topic; C1 takes from the one and gives to the other."""
    members = subscribers(C0="t0", C1="t0 t1", C2="t1")
    members = after(members, {"C0": "t0p0 t0p1", "C1": "t1p0", "C2": ""})
    assert assign("sticky", {"t0": 2, "t1": 1}, members) == {
        "C0": "t0p0",
        "C1": "t0p1",
        "C2": "t1p0",
    }


def test_sticky_believes_the_latest_generation() -> None:
    """AS-4: a member that slept through a rebalance claims what others have now (KAFKA-7984)."""
    members = [
        GroupMember("C0", ("t",), (named("tp0"), named("tp1")), generation=3),
        GroupMember("C1", ("t",), (named("tp2"), named("tp3")), generation=5),
        GroupMember("C2", ("t",), (named("tp0"), named("tp4")), generation=5),
    ]
    assert assign("sticky", {"t": 6}, members) == {
        "C0": "tp1 tp5",
        "C1": "tp2 tp3",
        "C2": "tp0 tp4",
    }
    torn = [member._replace(generation=5) for member in members]
    assert assign("sticky", {"t": 6}, torn) == {
        "C0": "tp1 tp0",
        "C1": "tp2 tp3",
        "C2": "tp4 tp5",
    }, "C0 and C2 contradict each other about tp0"


def test_sticky_places_first_what_has_the_fewest_readers() -> None:
    """AS-4: z can only go to A, so it goes before a, which has a choice."""
    assert assign("sticky", {"a": 2, "z": 1}, subscribers(A="a z", B="a")) == {
        "A": "zp0 ap1",
        "B": "ap0",
    }


def test_sticky_rather_moves_what_no_member_had() -> None:
    """AS-4: G has one too many; it keeps a, which it had, and b goes, which it was just given."""
    members = subscribers(G="a b c", H="c h", T="a b x")
    held = {"G": "ap0", "H": "hp0 hp1 hp2 hp3 hp4", "T": "xp0"}
    topics = {"a": 1, "b": 1, "c": 2, "h": 5, "x": 1}
    assert assign("sticky", topics, after(members, held)) == {
        "G": "ap0 cp0 cp1",
        "H": held["H"],
        "T": "xp0 bp0",
    }


def test_sticky_evens_out_beside_a_member_that_cannot_give() -> None:
    """AS-4: no member can relieve X, which has the most; A can still give to B."""
    members = after(subscribers(A="t", B="t", X="x"), {"A": "tp0 tp1", "B": "", "X": ""})
    assert assign("sticky", {"t": 2, "x": 5}, members) == {
        "A": "tp0",
        "B": "tp1",
        "X": "xp0 xp1 xp2 xp3 xp4",
    }


# ---- cooperative-sticky ----


def test_cooperative_assigns_a_moving_partition_only_once_it_is_given_up() -> None:
    """AS-6: a third member joins two that have everything; two rebalances."""
    members = subscribers(C0=ALL_FOUR, C1=ALL_FOUR)
    first = assign("cooperative-sticky", FOUR_TOPICS, members)
    members = [*after(members, first), *subscribers(C2=ALL_FOUR)]
    second = assign("cooperative-sticky", FOUR_TOPICS, members)
    for name, had in first.items():
        assert set(second[name].split()) < set(had.split()), "revoke one, keep the others"
    assert second["C2"] == ""
    third = assign("cooperative-sticky", FOUR_TOPICS, after(members, second))
    assert [len(third[name].split()) for name in ("C0", "C1", "C2")] == [3, 3, 2]
    for name, kept in second.items():
        assert set(kept.split()) <= set(third[name].split())


def test_cooperative_gives_orphans_at_once() -> None:
    """AS-6: what a dead member had needs no revocation."""
    members = subscribers(C0=ALL_FOUR, C1=ALL_FOUR, C2=ALL_FOUR)
    first = assign("sticky", FOUR_TOPICS, members)
    left = without("C1", after(members, first))
    assert assign("cooperative-sticky", FOUR_TOPICS, left) == assign("sticky", FOUR_TOPICS, left)


# ---- all of them ----


@pytest.mark.parametrize("name", ASSIGNORS)
def test_static_members_keep_their_place_over_a_restart(name: str) -> None:
    """AS-2, AS-3: sorted by instance id, so that a new member id changes nothing (KIP-345)."""
    members = [
        GroupMember("x", ("t",), instance_id="one"),
        GroupMember("y", ("t",), instance_id="two"),
    ]
    before = ASSIGNORS[name].assign({"t": 4}, members)
    members[0] = members[0]._replace(member_id="z")
    now = ASSIGNORS[name].assign({"t": 4}, members)
    assert (now["z"], now["y"]) == (before["x"], before["y"])


@pytest.mark.parametrize("name", ASSIGNORS)
def test_no_members_and_no_topics(name: str) -> None:
    """AS-1: more members than partitions, topics that are not there, no members at all."""
    assert ASSIGNORS[name].assign({"t": 3}, []) == {}
    assert assign(name, {}, subscribers(C0="gone")) == {"C0": ""}
    assert assign(name, {"t": 1}, subscribers(C0="t", C1="t")) == {"C0": "tp0", "C1": ""}


def test_the_strategy_takes_names_and_kafkas_classes() -> None:
    """AS-1: `partition.assignment.strategy`."""
    text = "range, org.apache.kafka.clients.consumer.CooperativeStickyAssignor,range"
    assert [each.name for each in chosen_assignors(text)] == ["range", "cooperative-sticky"]
    with pytest.raises(ConfigError, match="'fair' is not one of range, roundrobin"):
        chosen_assignors("fair")


# ---- work ----


class Counted(str):
    """A topic's name that counts how often one is compared or hashed."""

    count = 0

    def __hash__(self) -> int:
        Counted.count += 1
        return str.__hash__(self)

    def __eq__(self, other: object) -> bool:
        Counted.count += 1
        return str.__eq__(self, other)


def work_of_sharing(name: str, topic_count: int, partition_count: int, member_count: int) -> int:
    """What it takes until a member that owns everything shares it with new ones."""
    topics = {Counted(f"t{number:04}"): partition_count for number in range(topic_count)}
    everything = [TopicPartition(t, number) for t in topics for number in range(partition_count)]
    members = [GroupMember(f"C{place}", tuple(topics)) for place in range(member_count)]
    members[0] = members[0]._replace(owned=tuple(everything), generation=1)
    Counted.count = 0
    ASSIGNORS[name].assign(topics, members)
    return Counted.count


@pytest.mark.thorough
@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize(("topic_count", "partition_count"), [(1, 5_000), (5_000, 1)])
def test_the_work_grows_with_the_partitions_and_not_with_their_square(
    name: str, topic_count: int, partition_count: int
) -> None:
    """A leader computes it on its event loop, where heartbeats wait for it."""
    members = 4
    work = work_of_sharing(name, topic_count, partition_count, members)
    assert work < 20 * members * 5_000
