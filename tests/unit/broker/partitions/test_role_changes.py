"""The answer to a LeaderAndIsr during which a log directory fails (ST-10)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.broker.partitions.replica import Replica
from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.broker.partitions.replicas import Replicas
from barnabas.clock import SystemClock
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState
from barnabas.cluster.image import PartitionImage
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaStorageError
from barnabas.storage.files import OsFiles
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.broker.hosted_parts import HostedParts

NAMES = [TopicPartition("t", number) for number in range(3)]


class _FailsWithTheLast(ReplicaListener):
    """The log fails that got its role first, when the last one gets its own."""

    __slots__ = ("_replicas",)

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas

    def on_leading(self, replica: Replica) -> None:
        if replica.topic_partition == NAMES[-1]:
            self._replicas.replica_of(NAMES[0]).fail(OSError(5, "EIO"))


def test_st_10_a_directory_that_fails_behind_a_role_is_in_the_answer(tmp_path: Path) -> None:
    """Else the controller took for hosted again what is lost."""
    config = BrokerConfig({})
    store = LogStore.open(
        OsFiles(),
        [tmp_path / "a", tmp_path / "b"],
        config=config.log_config({}),
        broker_id=0,
        now_ms=0,
    )
    parts = HostedParts(store, config, SystemClock(), lambda all_: [_FailsWithTheLast(all_)])
    led = PartitionImage(0, 0, (0,), (0,), 0, 1)
    states = tuple(PartitionState(name, b"\1" * 16, led, {}, True) for name in NAMES)

    async def apply() -> dict[TopicPartition, int]:
        return parts.role_changes.apply_leader_and_isr(LeaderAndIsr(1, 1, states))

    codes = asyncio.run(apply())
    offline = parts.replicas.offline
    assert NAMES[0] in offline
    assert codes == {name: KafkaStorageError.code * (name in offline) for name in NAMES}
    assert 0 in codes.values(), "the other directory is well"
    store.close()
