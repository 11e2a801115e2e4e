"""Which replicas a throttled reassignment counts, and on which brokers: as Kafka's tool has it."""

from __future__ import annotations

from barnabas.cli.partitions.reassign_throttle import Move, moves, taking_part, throttled_replicas
from barnabas.client.admin.partition_admin import Reassignment
from barnabas.types import TopicPartition


def name(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


def move(sources: set[int], destinations: set[int]) -> Move:
    return Move(frozenset(sources), frozenset(destinations))


def test_re_13_who_has_it_leads_and_who_gets_it_follows() -> None:
    """A broker that stays is a source, and none of the destinations."""
    found = moves({}, {name(0): (2, 3)}, {name(0): (1, 2)})
    assert found == {name(0): move({1, 2}, {3})}
    assert throttled_replicas(found) == {"t": ("0:1,0:2", "0:3")}
    assert taking_part(found) == [1, 2, 3]


def test_another_order_of_the_same_brokers_copies_nothing() -> None:
    """The setting is written all the same, empty: what an older move has left there is void."""
    found = moves({}, {name(0): (2, 1)}, {name(0): (1, 2)})
    assert throttled_replicas(found) == {"t": ("0:1,0:2", "")}


def test_what_moves_already_stays_counted() -> None:
    """Of the same topic and of others, though this file does not name it."""
    moving = {
        name(1): Reassignment((1, 2, 3), (3,), (1,)),
        name(0, "u"): Reassignment((4, 5), (5,), ()),
    }
    found = moves(moving, {name(0): (3,)}, {name(0): (1,)})
    assert throttled_replicas(found) == {"t": ("0:1,1:1,1:2", "0:3,1:3"), "u": ("0:4", "0:5")}
    assert taking_part(found) == [1, 2, 3, 4, 5]


def test_a_move_that_is_resubmitted_has_its_old_sources() -> None:
    """Else its new replicas, which are among the partition's by now, would count as old ones."""
    moving = {name(0): Reassignment((3, 1, 2), (3,), (1,))}
    resubmitted = moves(moving, {name(0): (3, 2)}, {name(0): (3, 1, 2)})
    assert resubmitted == {name(0): move({1, 2}, {3})}
    elsewhere = moves(moving, {name(0): (4, 2)}, {name(0): (3, 1, 2)})
    assert elsewhere == {name(0): move({1, 2}, {4})}


def test_replicas_are_in_the_order_of_their_texts() -> None:
    found = {name(10): move({1}, {2}), name(2): move({11, 3}, {1})}
    assert throttled_replicas(found) == {"t": ("10:1,2:11,2:3", "10:2,2:1")}
