"""Replicas in log directories, without connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.clock import SystemClock
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState, StopReplica
from barnabas.cluster.image import PartitionImage
from barnabas.config import BrokerConfig
from barnabas.storage.files import Files, OsFiles
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.broker.hosted_parts import HostedParts

TOPIC_ID = b"\1" * 16


class OnDisks:
    """Replicas in two log directories, in one life of their broker."""

    def __init__(self, directories: list[Path], files: Files | None = None) -> None:
        config = BrokerConfig({})
        self.store = LogStore.open(
            files or OsFiles(), directories, config=config.log_config({}), broker_id=0, now_ms=0
        )
        self.kept_count = 0
        self.parts = HostedParts(self.store, config, SystemClock(), keep_objects=self._keep_objects)
        self.replicas = self.parts.replicas

    def _keep_objects(self) -> None:
        self.kept_count += 1

    def host(self, *names: TopicPartition, is_new: bool = True, topic_id: bytes = TOPIC_ID) -> int:
        """Lead these; the worst of the error codes."""
        led = PartitionImage(0, 0, (0,), (0,), 0, 1)
        states = tuple(PartitionState(name, topic_id, led, {}, is_new) for name in names)

        async def apply() -> int:
            return max(
                self.parts.role_changes.apply_leader_and_isr(LeaderAndIsr(1, 1, states)).values()
            )

        return asyncio.run(apply())

    def stop(self, *names: TopicPartition, delete: bool = True) -> list[int]:
        codes = self.parts.role_changes.apply_stop_replica(StopReplica(1, 1, names, delete))
        assert codes.keys() == set(names)
        return [codes[name] for name in names]
