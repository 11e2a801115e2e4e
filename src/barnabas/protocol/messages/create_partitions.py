"""CreatePartitions (key 37): adds partitions to topics (KIP-195).

Version 2 is flexible. Versions 1 and 3 changed only how clients are throttled.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT16, INT32, STRING, Array


class CreatePartitionsAssignment(Message):
    broker_ids: list[int] = field(Array(INT32))


class CreatePartitionsTopic(Message):
    name: str = field(STRING)
    count: int = field(INT32)  # the new total, including the existing partitions
    assignments: list[CreatePartitionsAssignment] | None = field(
        Array(CreatePartitionsAssignment), nullable="0+", default=None
    )


class CreatePartitionsRequest(Message, flexible="2+"):
    topics: list[CreatePartitionsTopic] = field(Array(CreatePartitionsTopic))
    timeout_ms: int = field(INT32)
    validate_only: bool = field(BOOLEAN)


class CreatePartitionsTopicResult(Message):
    name: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(STRING, nullable="0+", default=None)


class CreatePartitionsResponse(Message, flexible="2+"):
    throttle_time_ms: int = field(INT32, ignorable=True)
    results: list[CreatePartitionsTopicResult] = field(Array(CreatePartitionsTopicResult))
