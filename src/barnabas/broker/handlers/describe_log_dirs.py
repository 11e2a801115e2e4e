"""DescribeLogDirs (key 35): describe this broker's log directories and their partitions.

The response to a request for all partitions also lists the logs that were set aside. An offline
directory is listed with KAFKA_STORAGE_ERROR and without partitions, so that the client can see
which disk has failed.
"""

from __future__ import annotations

from pathlib import Path

from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.slices import Pace, Slices, run_slices
from barnabas.errors import ClusterAuthorizationFailed, KafkaStorageError
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsStray,
    DescribeLogDirsTopic,
)
from barnabas.security.acl import CLUSTER_NAME
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition

Wanted = frozenset[TopicPartition] | None
"""The requested partitions. If None, all partitions are described."""


def handle(context: Context, request: DescribeLogDirsRequest) -> Outcome:
    return run_slices(_describe(context, request))


def _describe(context: Context, request: DescribeLogDirsRequest) -> Slices[DescribeLogDirsResponse]:
    if not context.is_allowed(CLUSTER_NAME):
        return DescribeLogDirsResponse(error_code=ClusterAuthorizationFailed.code)
    wanted: Wanted = None
    if request.topics is not None:
        names: set[TopicPartition] = set()
        pace = Pace()
        for topic in request.topics:
            for partition in topic.partitions:
                names.add(TopicPartition(topic.topic, partition))
                if pace.is_over():
                    yield
            if pace.is_over():
                yield
        wanted = frozenset(names)
    store = context.node.replicas.store
    return DescribeLogDirsResponse(
        results=[
            *(_online(store, path, wanted) for path in store.directories.online),
            *(_offline(path) for path in store.directories.failed),
        ]
    )


def _online(store: LogStore, path: Path, wanted: Wanted) -> DescribeLogDirsResult:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    try:
        space, strays = store.directories.volume(path, with_strays=wanted is None)
    # The disk failed before any log had an I/O error.
    except OSError:
        return _offline(path)
    for name, (size_bytes, offset_lag, is_future) in store.sizes(path).items():
        if wanted is None or name in wanted:
            by_topic.setdefault(name.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=name.partition,
                    partition_size=size_bytes,
                    offset_lag=offset_lag,
                    is_future_key=is_future,
                )
            )
    return DescribeLogDirsResult(
        log_dir=str(path.absolute()),
        topics=[DescribeLogDirsTopic(name=name, partitions=by_topic[name]) for name in by_topic],
        total_bytes=space.total_bytes,
        usable_bytes=space.usable_bytes,
        strays=[DescribeLogDirsStray(name=name, size=size) for name, size in strays.items()],
    )


def _offline(path: Path) -> DescribeLogDirsResult:
    return DescribeLogDirsResult(log_dir=str(path.absolute()), error_code=KafkaStorageError.code)
