"""Replicas in a log directory without a server around them: a test says what happens between two
steps of what runs beside the requests, and when the disk answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from barnabas.broker.partitions.housekeeping import Housekeeping
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.clock import SystemClock
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState, StopReplica
from barnabas.cluster.image import PartitionImage
from barnabas.config import BrokerConfig
from barnabas.storage.files import OsFiles
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.broker.hosted_parts import HostedParts
from tests.kit.raw_client import PATIENCE_S
from tests.kit.storage.disk import QuickFiles, batch
from tests.kit.waiting import until


class HeldFiles(QuickFiles):
    """A disk whose syncs of some files take until the test lets them go on."""

    __slots__ = ("_gate", "arrived", "is_held", "passed")

    def __init__(self) -> None:
        self._gate = threading.Condition()
        self.is_held: Callable[[Path], bool] = lambda _: False
        """Which files' syncs have to wait."""
        self.arrived = 0
        """How many have come so far that had to wait."""
        self.passed = 0
        """How many of those may go on, in the order of their arrival."""

    def sync(self, path: Path) -> None:
        if self.is_held(path):
            with self._gate:
                number = self.arrived
                self.arrived += 1
                assert self._gate.wait_for(lambda: self.passed > number, PATIENCE_S)
        super().sync(path)

    def write(self, path: Path, data: bytes, *, sync: bool = False) -> None:
        super().write(path, data)
        if sync:
            self.sync(path)

    def pass_one(self) -> None:
        with self._gate:
            self.passed += 1
            self._gate.notify_all()

    def let_go(self) -> None:
        """Nothing is held from now on."""
        self.is_held = lambda _: False
        with self._gate:
            self.passed = 1 << 30
            self._gate.notify_all()


class Hosted:
    """Partitions that broker 0 hosts."""

    def __init__(
        self, directory: Path | Sequence[Path], files: OsFiles | None = None, **settings: str
    ) -> None:
        """In this log directory, or in these."""
        properties = {name.replace("_", "."): value for name, value in settings.items()}
        config = BrokerConfig(properties)
        clock = WatchedClock(SystemClock())
        directories = [directory] if isinstance(directory, Path) else directory
        disk = files or QuickFiles()
        self.store = LogStore.open(
            disk, directories, config=config.log_config(), broker_id=0, now_ms=0
        )
        self.parts = HostedParts(self.store, config, clock)
        self.replicas, self.role_changes = self.parts.replicas, self.parts.role_changes
        self.housekeeping = Housekeeping(
            self.parts.config, clock, self.store, self.replicas, self.parts.failures, disk
        )
        self._epochs = 0

    def host(self, topic: str, *, replicas: tuple[int, ...] = (0,), **config: str) -> Replica:
        """A new topic of one partition, which this broker leads."""
        self.name(topic, replicas=replicas, **config)
        return self.replicas.replica_of((topic, 0))

    def name(self, topic: str, *, replicas: tuple[int, ...] = (0,), **config: str) -> None:
        """As `host`; it may be put off."""
        name = TopicPartition(topic, 0)
        topic_id = (self._epochs + 1).to_bytes(16, "big")
        settings = {key.replace("_", "."): value for key, value in config.items()}
        assert self._apply(name, topic_id, 0, replicas, settings) == 0

    def resume(self, topic: str, **config: str) -> Replica:
        """As `host`, of a topic whose log may be here since before a restart."""
        name = TopicPartition(topic, 0)
        log = self.store.logs.get(name)
        if log is None or log.topic_id is None:
            self.name(topic, replicas=(0,), **config)
            return self.replicas.replica_of(name)
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self._epochs = max(self._epochs, log.latest_epoch)
        assert self._apply(name, log.topic_id, 0, (0,), settings) == 0
        return self.replicas.replica_of(name)

    def change_leader(self, replica: Replica, *, leader: int, replicas: tuple[int, ...]) -> None:
        """The controller has another leader, in a new epoch."""
        name, topic_id = replica.topic_partition, replica.partition.topic_id
        assert self._apply(name, topic_id, leader, replicas, {}) == 0

    def _apply(
        self,
        name: TopicPartition,
        topic_id: bytes,
        leader: int,
        replicas: tuple[int, ...],
        settings: dict[str, str],
    ) -> int:
        self._epochs += 1
        image = PartitionImage(leader, self._epochs, replicas, replicas, self._epochs, 1)
        state = PartitionState(name, topic_id, image, settings, is_new=True)
        return self.role_changes.apply_leader_and_isr(LeaderAndIsr(1, 1, (state,)))[name]

    def delete(self, topic: str) -> None:
        name = TopicPartition(topic, 0)
        codes = self.role_changes.apply_stop_replica(StopReplica(1, 1, (name,), delete=True))
        assert codes == {name: 0}

    def append(self, replica: Replica, size: int = 10) -> int:
        """One batch, written; the offset behind it."""
        end_offset = replica.append(memoryview(batch(1, size)), 0).last_offset + 1
        self.replicas.write_staged()
        return end_offset

    def fill(self, replica: Replica) -> None:
        """Several segments, which are out of date."""
        for _ in range(3):
            self.append(replica, 600)

    @property
    def has_failed(self) -> bool:
        return bool(self.store.directories.failed)

    async def flushed(self, replica: Replica) -> None:
        """Return when no flush is under way."""
        await until(lambda: replica.flush is None)
