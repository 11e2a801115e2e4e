"""The file of `records delete`: Kafka's."""

from __future__ import annotations

import pytest

from barnabas.cli.records.delete_command import BadOffsets, parse_offsets
from barnabas.types import TopicPartition


def test_kafkas_file_is_read() -> None:
    text = (
        '{"partitions": [{"topic": "a", "partition": 0, "offset": 4},'
        ' {"topic": "a", "partition": 1, "offset": -1}], "version": 1}'
    )
    assert parse_offsets(text) == {TopicPartition("a", 0): 4, TopicPartition("a", 1): -1}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("[]", "does not have the form"),
        ('{"version": 2, "partitions": [{}]}', "does not have the form"),
        ("{}", "no partitions"),
        ('{"partitions": []}', "no partitions"),
        ('{"partitions": {"topic": "a"}}', "no partitions"),
        ('{"partitions": [7]}', "7: not a topic"),
        ('{"partitions": [{"topic": "a", "partition": 0}]}', "not a topic"),
        ('{"partitions": [{"topic": 1, "partition": 0, "offset": 4}]}', "not a topic"),
        ('{"partitions": [{"topic": "a", "partition": true, "offset": 4}]}', "not a topic"),
        ('{"partitions": [{"topic": "a", "partition": 0, "offset": -2}]}', "not a topic"),
        ('{"partitions": [{"topic": "a", "partition": 0, "offset": 1e99}]}', "not a topic"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "offset": 4},'
            ' {"topic": "a", "partition": 0, "offset": 5}]}',
            "a-0 twice",
        ),
    ],
)
def test_a_file_that_is_something_else_is_refused(text: str, problem: str) -> None:
    """UX-4."""
    with pytest.raises(BadOffsets, match=problem):
        parse_offsets(text)
