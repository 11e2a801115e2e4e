"""The files of `reassign` and `elect-leaders`, and what the former says."""

from __future__ import annotations

import pytest

from barnabas.cli.partitions.reassign_plan import (
    BadPlan,
    current,
    moving_lines,
    plan_text,
    propose,
    read_names,
    read_plan,
    read_topics,
    status_lines,
)
from barnabas.client.admin.admin import TopicDescription
from barnabas.client.admin.partition_admin import Reassignment
from barnabas.client.view import PartitionView
from barnabas.errors import InvalidReplicationFactor
from barnabas.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TEXT = (
    '{"version":1,"partitions":['
    '{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["any","any"]},'
    '{"topic":"t","partition":1,"replicas":[2,3],"log_dirs":["any","any"]}]}'
)


def described(name: str, *replicas: tuple[int, ...]) -> TopicDescription:
    partitions = (PartitionView(i, each[0], 0, each, each, ()) for i, each in enumerate(replicas))
    return TopicDescription(name, bytes(16), False, tuple(partitions))


def test_a_file_is_read_as_it_is_written() -> None:
    """RE-13: as Kafka's tool writes it, to the byte."""
    plan = {T0: (1, 2), T1: (2, 3)}
    assert read_plan(TEXT) == plan
    assert plan_text(dict(reversed(plan.items()))) == TEXT
    assert read_plan('{"partitions":[{"topic":"t","partition":0,"replicas":[3]}]}') == {T0: (3,)}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", '"partitions" is not a list'),
        ('{"partitions":[1]}', "not a list of objects"),
        ('{"version":2,"partitions":[]}', "version 2 is not known"),
        ('{"partitions":[]}', "no partition is named"),
        ('{"partitions":[{"topic":"t"}]}', 'no "topic", or no "partition"'),
        ('{"partitions":[{"topic":"t","partition":true,"replicas":[1]}]}', 'no "partition"'),
        ('{"partitions":[{"topic":"t","partition":0}]}', "not a list of broker ids"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":["1"]}]}', "not a list of broker"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}', "t-0 would have no replica"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}', "broker twice: 1,1"),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["d"]}]}',
            '\'d\' in "log_dirs" is neither "any" nor an absolute path',
        ),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1,2],"log_dirs":["/d"]}]}',
            't-0 has 2 "replicas", but 1 "log_dirs"',
        ),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":"/d"}]}',
            '"log_dirs" is not a list of paths',
        ),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1]},'
            '{"topic":"t","partition":0,"replicas":[2]}]}',
            "t-0 is named twice",
        ),
    ],
)
def test_a_file_with_a_mistake_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(BadPlan, match=complaint):
        read_plan(text)


def test_the_smaller_files() -> None:
    assert read_names('{"partitions":[{"topic":"t","partition":1}]}') == [T1]
    assert read_topics('{"topics":[{"topic":"b"},{"topic":"a"},{"topic":"b"}],"version":1}') == [
        "b",
        "a",
    ]
    for text in ('{"topics":[]}', '{"topics":[{"topic":1}]}', '{"topics":[{}]}', "{}"):
        with pytest.raises(BadPlan):
            read_topics(text)
    with pytest.raises(BadPlan):
        read_names('{"partitions":[]}')


def test_a_proposal_keeps_the_replication_factor_and_spreads_the_leaders() -> None:
    topics = [described("t", (1, 2), (1, 2), (1, 2)), described("u", (9,))]
    plan = propose(topics, {1: None, 2: None, 3: None}, 1)
    assert [len(replicas) for replicas in plan.values()] == [2, 2, 2, 1]
    assert [plan[TopicPartition("t", number)][0] for number in range(3)] == [2, 3, 1]
    assert current(topics)[TopicPartition("u", 0)] == (9,)
    with pytest.raises(InvalidReplicationFactor):
        propose(topics, {1: None}, 0)


def test_a_proposal_has_the_replication_factor_of_the_partitions_that_do_not_move() -> None:
    racks = dict.fromkeys(range(1, 6))
    growing = described("t", (1, 2, 3, 4), (1, 2), (2, 3))
    assert {len(each) for each in propose([growing], racks, 0).values()} == {2}
    only = described("t", (1, 2, 3, 4))
    moving = {TopicPartition("t", 0): Reassignment((1, 2, 3, 4), (3, 4), (1, 2))}
    assert [len(each) for each in propose([only], racks, 0, moving).values()] == [2]


def test_a_proposal_puts_replicas_into_different_racks() -> None:
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b"}
    plan = propose([described("t", *[(1, 2)] * 8)], racks, 0)
    assert all(len({racks[broker] for broker in replicas}) == 2 for replicas in plan.values())


def test_how_far_it_is() -> None:
    """RE-13: Kafka's lines."""
    wanted = {T1: (2, 3), T0: (1, 2), TopicPartition("gone", 0): (1,)}
    moving = {T1: Reassignment((2, 3, 1), (3,), (1,))}
    assert status_lines(wanted, {T0: (2, 1), T1: (2, 3, 1)}, moving) == [
        "Status of partition reassignment:",
        "There is no active reassignment of partition gone-0, but replica set is  rather than 1.",
        "There is no active reassignment of partition t-0, but replica set is 2,1 rather than 1,2.",
        "Reassignment of partition t-1 is still in progress.",
    ]
    assert status_lines({T0: (1, 2)}, {T0: (1, 2)}, {})[1:] == [
        "Reassignment of partition t-0 is completed."
    ]


def test_what_is_under_way() -> None:
    assert moving_lines({}) == ["No partition reassignments found."]
    assert moving_lines(
        {T1: Reassignment((2, 3), (3,), ()), T0: Reassignment((2, 3, 1), (3,), (1,))}
    ) == [
        "Current partition reassignments:",
        "t-0: replicas: 2,3,1. adding: 3. removing: 1.",
        "t-1: replicas: 2,3. adding: 3.",
    ]
