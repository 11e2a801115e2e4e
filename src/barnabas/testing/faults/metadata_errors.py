"""Errors in the answer to a Metadata request, which need not have named the topics."""

from __future__ import annotations

from typing import Any

from barnabas.testing.faults.selection import Narrowed

_NO_LEADER = -1


def put_errors(to: Narrowed, code: int, answer: Any) -> None:
    """Put the error on each topic that it is about, or on the one partition."""
    for topic in answer.topics:
        if to.topic not in (None, topic.name):
            continue
        if to.partition is None:
            topic.error_code = code
            topic.partitions = []
            continue
        for partition in topic.partitions:
            if partition.partition_index == to.partition:
                partition.error_code = code
                partition.leader_id = _NO_LEADER
