"""What may be created as a topic."""

from __future__ import annotations

import pytest

from barnabas.controller.topics import (
    MAX_NEW_PARTITIONS,
    check_added_replicas,
    check_assignment,
    check_collision,
    check_config,
    check_growth,
    check_new_partitions,
)
from barnabas.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidTopic,
    PolicyViolation,
)


def test_dot_and_underscore_collide() -> None:
    with pytest.raises(InvalidTopic, match=r"'a_b' collides with 'a\.b'"):
        check_collision("a_b", ["x", "a.b"])
    check_collision("a.b", ["a.b", "a-b", "ab"])


@pytest.mark.parametrize(
    "assignment",
    [
        {},
        {1: [0]},
        {0: [0], 2: [0]},
        {0: []},
        {0: [0, 1], 1: [0]},
        {0: [0, 0]},
        {0: [0, 9]},
    ],
)
def test_assignments_that_cannot_be(assignment: dict[int, list[int]]) -> None:
    with pytest.raises(InvalidReplicaAssignment):
        check_assignment(assignment, [0, 1, 2])


def test_an_assignment_that_can_be() -> None:
    check_assignment({0: [0, 1], 1: [2, 0]}, [0, 1, 2])


def test_configs_are_checked_before_anything_is_made() -> None:
    check_config({"retention.ms": "-1", "cleanup.policy": "compact,delete"})
    with pytest.raises(InvalidConfig, match=r"retention\.msx is not a topic config"):
        check_config({"retention.msx": "1"})
    with pytest.raises(InvalidConfig, match=r"segment\.bytes: '1' is not one of"):
        check_config({"segment.bytes": "1"})


def test_partitions_can_only_be_added() -> None:
    """TP-5"""
    check_growth("t", 2, 3)
    for total in (-1, 0, 1):
        with pytest.raises(InvalidPartitions, match="has 2 partitions, more than"):
            check_growth("t", 2, total)
    with pytest.raises(InvalidPartitions, match="already has 2 partitions"):
        check_growth("t", 2, 2)


def test_no_client_fills_the_disk_with_one_request() -> None:
    check_new_partitions(MAX_NEW_PARTITIONS)
    check_growth("t", 5, 5 + MAX_NEW_PARTITIONS)
    with pytest.raises(PolicyViolation):
        check_new_partitions(MAX_NEW_PARTITIONS + 1)
    with pytest.raises(PolicyViolation):
        check_growth("t", 5, 6 + MAX_NEW_PARTITIONS)
    with pytest.raises(PolicyViolation):
        check_assignment({number: [0] for number in range(MAX_NEW_PARTITIONS + 1)}, [0])


@pytest.mark.parametrize(
    ("added", "complaint"),
    [
        ([[0, 9]], "are not live"),
        ([[0, 1], [1, 2]], "1 partition to add, but replicas are given for 2"),
        ([[1, 1]], "partition 1 lists a broker twice"),
        ([[1]], "partition 1 has 1 replica, but partition 0 has 2"),
        ([[]], "partition 1 has 0 replicas"),
    ],
)
def test_added_replicas_that_cannot_be(added: list[list[int]], complaint: str) -> None:
    """TP-5"""
    with pytest.raises(InvalidReplicaAssignment, match=complaint):
        check_added_replicas({0: [0, 1]}, added, 2, [0, 1, 2])


def test_added_replicas_that_can_be() -> None:
    added = check_added_replicas({0: [0, 1]}, [[1, 2], [2, 0]], 3, [0, 1, 2])
    assert added == {1: [1, 2], 2: [2, 0]}
