"""What a topic, and a partition's directory, may be called."""

from __future__ import annotations

import pytest

from barnabas.errors import InvalidTopic
from barnabas.topic_name import check_directory_name, check_topic_name
from barnabas.types import TopicPartition


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


@pytest.mark.parametrize("topic", ["../../x", "/tmp/x", "..", "a/b", ""])
def test_tp_3_no_directory_lies_elsewhere(topic: str) -> None:
    with pytest.raises(InvalidTopic):
        check_directory_name(TopicPartition(topic, 0))


def test_tp_3_a_partition_has_a_number_from_0() -> None:
    check_directory_name(TopicPartition("a", 0))
    with pytest.raises(InvalidTopic, match="topic a has no partition -1"):
        check_directory_name(TopicPartition("a", -1))
