"""ControlledShutdown (key 7): a stopping broker asks the controller to move leadership away.

Version 2 adds the broker epoch (KIP-380), and version 3 is flexible.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import INT16, INT32, INT64, STRING, Array


class ControlledShutdownRequest(Message, flexible="3+"):
    broker_id: int = field(INT32)
    # KIP-380: a request from an earlier registration must not move leaders away from a broker that
    # has registered again.
    broker_epoch: int = field(INT64, versions="2+", ignorable=True, default=-1)


class RemainingPartition(Message):
    topic_name: str = field(STRING)
    partition_index: int = field(INT32)


class ControlledShutdownResponse(Message, flexible="3+"):
    error_code: int = field(INT16)
    remaining_partitions: list[RemainingPartition] = field(Array(RemainingPartition))
