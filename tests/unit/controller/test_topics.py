"""What may be created as a topic."""

from __future__ import annotations

import pytest

from barnabas.controller.topics import (
    check_assignment,
    check_collision,
    check_config,
    check_topic_name,
)
from barnabas.errors import InvalidConfig, InvalidReplicaAssignment, InvalidTopic


@pytest.mark.parametrize("name", ["a", "a.b_c-1", "A" * 249, "...", "__consumer_offsets", "-x"])
def test_names_that_are_possible(name: str) -> None:
    check_topic_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a" * 250, "a b", "a/b", "grüße", "a\n", "a\0", "a:b", "٣"]
)
def test_names_that_are_not(name: str) -> None:
    """TP-3: a name is part of a directory's name."""
    with pytest.raises(InvalidTopic):
        check_topic_name(name)


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
    with pytest.raises(InvalidConfig, match=r"retention\.msx is no topic config"):
        check_config({"retention.msx": "1"})
    with pytest.raises(InvalidConfig, match=r"segment\.bytes: '1' is not one of"):
        check_config({"segment.bytes": "1"})
