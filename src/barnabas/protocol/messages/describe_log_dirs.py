"""DescribeLogDirs (key 35): returns the replicas in a broker's log directories (KIP-113).

Version 2 is flexible, version 3 adds an error for the whole request, and version 4 adds the sizes
of the volumes (KIP-827). Barnabas extends version 2 and above: the tagged field 10000 lists the
logs in the directory that were set aside, if there are any.
"""

from __future__ import annotations

from barnabas.protocol.message import Message, field
from barnabas.protocol.wire import BOOLEAN, INT16, INT32, INT64, STRING, Array

STRAYS_TAG = 10000


class DescribableLogDirTopic(Message):
    topic: str = field(STRING)
    partitions: list[int] = field(Array(INT32))


class DescribeLogDirsRequest(Message, flexible="2+"):
    topics: list[DescribableLogDirTopic] | None = field(
        Array(DescribableLogDirTopic), nullable="0+", default=None
    )


class DescribeLogDirsPartition(Message):
    partition_index: int = field(INT32)
    partition_size: int = field(INT64)
    offset_lag: int = field(INT64)
    # KIP-113: whether the replica is being moved to this directory from another one.
    is_future_key: bool = field(BOOLEAN)


class DescribeLogDirsTopic(Message):
    name: str = field(STRING)
    partitions: list[DescribeLogDirsPartition] = field(Array(DescribeLogDirsPartition))


class DescribeLogDirsStray(Message):
    name: str = field(STRING)
    size: int = field(INT64)


class DescribeLogDirsResult(Message):
    error_code: int = field(INT16)
    log_dir: str = field(STRING)
    topics: list[DescribeLogDirsTopic] = field(Array(DescribeLogDirsTopic))
    # KIP-827: the size of the whole volume.
    total_bytes: int = field(INT64, versions="4+", ignorable=True, default=-1)
    usable_bytes: int = field(INT64, versions="4+", ignorable=True, default=-1)
    strays: list[DescribeLogDirsStray] = field(
        Array(DescribeLogDirsStray), versions="2+", tag=STRAYS_TAG, ignorable=True
    )


class DescribeLogDirsResponse(Message, flexible="2+"):
    throttle_time_ms: int = field(INT32, ignorable=True)
    error_code: int = field(INT16, versions="3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field(Array(DescribeLogDirsResult))
