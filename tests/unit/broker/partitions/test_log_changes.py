"""Logs that LeaderAndIsr and StopReplica find damaged (ST-8)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.clock import SystemClock
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState, StopReplica
from barnabas.cluster.image import PartitionImage
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaStorageError
from barnabas.storage.files import OsFiles
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.broker.hosted_parts import HostedParts
from tests.kit.storage.disk import batch

NAME = TopicPartition("t", 0)
TOPIC_ID, OTHER_ID = b"\1" * 16, b"\2" * 16
STRAY = f"t-0.{TOPIC_ID.hex()}-stray"


def _open(directory: Path) -> HostedParts:
    config = BrokerConfig({})
    store = LogStore.open(
        OsFiles(), [directory], config=config.log_config({}), broker_id=0, now_ms=0
    )
    return HostedParts(store, config, SystemClock())


def _apply(parts: HostedParts, image: PartitionImage, topic_id: bytes = TOPIC_ID) -> int:
    state = PartitionState(NAME, topic_id, image, {}, False)

    async def apply() -> int:
        return parts.role_changes.apply_leader_and_isr(LeaderAndIsr(1, 1, (state,)))[NAME]

    return asyncio.run(apply())


def _led_by(leader: int, isr: tuple[int, ...], epoch: int = 2) -> PartitionImage:
    return PartitionImage(leader, epoch, isr, (0, 1), epoch, 1)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A log of this broker whose topic id is known, and whose only batch has an odd length."""
    parts = _open(tmp_path)
    log = parts.replicas.store.create(NAME, TOPIC_ID, BrokerConfig({}).log_config({}))
    log.append(memoryview(batch()), 0, 0)
    log.roll()
    parts.replicas.store.close()
    path = log.directory / f"{0:020}.log"
    raw = bytearray(path.read_bytes())
    raw[9] ^= 1
    path.write_bytes(raw)
    for each in log.directory.glob("*.snapshot"):
        each.write_bytes(b"")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n1\nt 0 1\n")
    assert list(_released(tmp_path)) == [NAME]
    return tmp_path


def _released(directory: Path) -> list[TopicPartition]:
    parts = _open(directory)
    parts.replicas.store.release()
    return list(parts.replicas.store.damaged)


def test_st_8_it_is_fetched_again_from_its_leader(damaged: Path) -> None:
    parts = _open(damaged)
    assert _apply(parts, _led_by(1, (1,))) == 0
    replica = parts.replicas.replica_of(NAME)
    assert (replica.log.log_end_offset, replica.partition.leader) == (0, 1)
    assert (damaged / STRAY / f"{0:020}.log").stat().st_size, "it is kept"
    assert not parts.replicas.store.damaged
    parts.replicas.store.close()


@pytest.mark.parametrize("image", [_led_by(0, (0,)), _led_by(1, (0, 1)), _led_by(-1, (0,))])
def test_st_8_it_is_offline_while_the_isr_counts_on_it(
    damaged: Path, image: PartitionImage
) -> None:
    """An empty log in the ISR could be elected: then all records were gone."""
    parts = _open(damaged)
    assert _apply(parts, image) == KafkaStorageError.code
    with pytest.raises(KafkaStorageError):
        parts.replicas.replica_of(NAME)
    assert list(parts.replicas.store.damaged) == [NAME]
    assert _apply(parts, _led_by(1, (1,), epoch=3)) == 0, "the controller has heard of it"
    assert parts.replicas.replica_of(NAME).log.log_end_offset == 0
    parts.replicas.store.close()


def test_zk_4_another_topic_begins_beside_it(damaged: Path) -> None:
    parts = _open(damaged)
    assert _apply(parts, _led_by(0, (0,)), OTHER_ID) == 0
    assert parts.replicas.leader_of(NAME).log.topic_id == OTHER_ID
    assert (damaged / STRAY).is_dir()
    parts.replicas.store.close()


def test_it_can_be_deleted(damaged: Path) -> None:
    parts = _open(damaged)
    assert _apply(parts, _led_by(0, (0,))) == KafkaStorageError.code
    stop = StopReplica(1, 1, (NAME,), True)
    assert parts.role_changes.apply_stop_replica(stop) == {NAME: 0}
    assert not parts.replicas.store.damaged
    parts.replicas.store.directories.purge_deleted()
    assert not list(damaged.glob("t-0*"))
    parts.replicas.store.close()
