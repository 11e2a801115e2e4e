"""Housekeeping: what is written beside the requests, and that the stop waits for it."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.broker.partitions.housekeeping import Housekeeping
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.clock import SystemClock
from barnabas.cluster.controller_requests import LeaderAndIsr, PartitionState
from barnabas.cluster.image import PartitionImage
from barnabas.config import BrokerConfig, LogConfig
from barnabas.protocol.api import DELETE_TOPICS
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.storage.files import OsFiles
from barnabas.storage.store import LogStore
from barnabas.types import TopicPartition
from tests.kit.broker.hosted_parts import HostedParts
from tests.kit.broker.hosting import HeldFiles, Hosted
from tests.kit.broker.produces import fill
from tests.kit.broker.replicated import Shared
from tests.kit.broker.replicated import fill as fill_leader
from tests.kit.broker.topics import create, topic_id_of
from tests.kit.effort import count_delays
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import until, wait_until


def line_of(checkpoint: Path, topic: str) -> str | None:
    lines = checkpoint.read_text().splitlines() if checkpoint.exists() else []
    return next((line for line in lines if line.startswith(f"{topic} ")), None)


def test_high_watermarks_are_checkpointed_while_it_runs() -> None:
    """RE-12's ground: a crash does not lose them all."""
    config = {"replica.high.watermark.checkpoint.interval.ms": "100"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "marked")
        fill(client, "marked", batch(b"a", b"b"))
        checkpoint = broker.data_dir / "replication-offset-checkpoint"
        wait_until(lambda: line_of(checkpoint, "marked") == "marked 0 2")


def test_a_log_that_is_cut_before_the_checkpoint_is_written_does_not_get_its_watermark_back(
    tmp_path: Path,
) -> None:
    """Or after a crash what was written behind the cut would pass for committed."""
    name = TopicPartition("t", 0)
    store = LogStore.open(OsFiles(), [tmp_path], config=LogConfig(), broker_id=0, now_ms=0)
    log = store.create(name, bytes(range(16)), LogConfig())
    log.append(memoryview(bytearray(batch(b"a", b"b"))), 0, 0)
    log.append(memoryview(bytearray(batch(b"c"))), 0, 0)
    log.write_staged()
    config, clock = BrokerConfig({}), WatchedClock(SystemClock())
    parts = HostedParts(store, config, clock)
    replicas = parts.replicas
    image = PartitionImage(1, 1, (0, 1), (0, 1), 0, 1)
    state = PartitionState(name, bytes(range(16)), image, {}, is_new=False)
    parts.role_changes.apply_leader_and_isr(LeaderAndIsr(1, 1, (state,)))
    replica = replicas.replica_of(name)
    replica.partition.on_copied(3, 3)
    housekeeping = Housekeeping(parts.config, clock, store, replicas, parts.failures, OsFiles())

    async def cut_while_the_disk_is_busy() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        busy = threading.Event()
        asyncio.get_running_loop().run_in_executor(None, busy.wait)
        checkpoint = asyncio.create_task(housekeeping._checkpoint_high_watermarks())
        await asyncio.sleep(0)
        replica.partition.on_truncated(2)
        store.truncations.truncate(name, 2)
        busy.set()
        await checkpoint

    asyncio.run(cut_while_the_disk_is_busy())
    assert line_of(tmp_path / "replication-offset-checkpoint", "t") == "t 0 2"
    store.close()


def test_rolled_segments_are_flushed_and_the_recovery_point_moves() -> None:
    """ST-8: what lies below it is not read again after a crash."""
    config = {"log.flush.offset.checkpoint.interval.ms": "100", "log.segment.bytes": "1000"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "rolled")
        fill(client, "rolled", *[batch(bytes(600))] * 3)
        checkpoint = broker.data_dir / "recovery-point-offset-checkpoint"
        wait_until(lambda: line_of(checkpoint, "rolled") == "rolled 0 2")


def test_a_damaged_file_holds_up_no_other_round_and_no_other_partition(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """ST-6, RE-12: its partition keeps what it has; and the stop is a clean one."""
    config = {"log.segment.bytes": "1000", "log.retention.ms": "1"}
    with (
        Broker(data_dir=tmp_path, config=config) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        for topic in ("damaged", "sound"):
            create(client, topic)
            fill(client, topic, *[batch(bytes(600))] * 3)
    config["log.retention.check.interval.ms"] = "1000"
    config["replica.high.watermark.checkpoint.interval.ms"] = "100"
    with (
        Broker(data_dir=tmp_path, config=config) as broker,
        RawClient(broker.bootstrap_servers) as client,
    ):
        os.truncate(tmp_path / "damaged-0" / f"{0:020}.timeindex", 0)
        wait_until(lambda: "cannot delete old segments of damaged-0" in caplog.text)
        wait_until(lambda: not (tmp_path / "sound-0" / f"{0:020}.log").exists())
        fill(client, "sound", batch(b"a"))
        wait_until(
            lambda: line_of(tmp_path / "replication-offset-checkpoint", "sound") == "sound 0 4"
        )
        assert (tmp_path / "damaged-0" / f"{0:020}.log").exists()


def test_deleted_partitions_are_removed_from_the_disk() -> None:
    """ZK-4: without leftovers."""
    config = {"log.segment.delete.delay.ms": "100"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "gone")
        fill(client, "gone", batch(b"a"))
        client.call(DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["gone"], timeout_ms=60_000))
        wait_until(lambda: not list(broker.data_dir.glob("gone-0*")))


def test_re_8_the_isr_is_looked_at_twice_in_the_time_of_a_lag() -> None:
    """So who is gone is out after one and a half times at most."""
    lag_ms = 1000
    config = {"replica.lag.time.max.ms": str(lag_ms)}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "lagging")
        shared = Shared(broker, "lagging", topic_id_of(client, "lagging"))
        delays_s: list[float] = []
        counting = asyncio.run_coroutine_threadsafe(count_delays(delays_s), broker.thread.loop)
        began = time.monotonic()
        shared.change_role(isr=(0, 1))
        fill_leader(client, "lagging", batch(b"a"))
        filled = time.monotonic()
        wait_until(lambda: shared.proposed() == [(0,)])
        proposed = time.monotonic()
        counting.cancel()
        assert 1000 * (proposed - began) >= lag_ms - 100
        assert 1000 * (proposed - filled - sum(delays_s)) <= 1.5 * lag_ms + 300


def test_re_8_no_look_at_the_isr_waits_for_a_disk(tmp_path: Path) -> None:
    """Nor does any other duty, while rolled segments take their time; the stop does."""
    files = HeldFiles()
    hosted = Hosted(
        tmp_path,
        files,
        replica_lag_time_max_ms="200",
        log_flush_offset_checkpoint_interval_ms="100",
        replica_high_watermark_checkpoint_interval_ms="100",
        log_retention_check_interval_ms="100",
    )
    old = {"segment_bytes": "1000", "retention_ms": "1"}

    async def with_a_slow_disk() -> None:
        rolled = hosted.host("rolled", segment_bytes="1000")
        hosted.fill(rolled)
        files.is_held = lambda path: path.parent.name == "rolled-0"
        hosted.housekeeping.start()
        await until(lambda: files.arrived == 1)
        shared = hosted.host("shared", replicas=(0, 1))
        hosted.append(shared)
        await until(hosted.parts.proposals.take_now)  # broker 1 has never fetched
        aged = hosted.host("aged", **old)
        hosted.fill(aged)
        await until(lambda: aged.log.log_start_offset == 3)
        checkpoint = tmp_path / "replication-offset-checkpoint"
        await until(lambda: line_of(checkpoint, "aged") == "aged 0 3")
        assert files.arrived == 1, "the disk is slow no more"
        stopping = asyncio.ensure_future(hosted.housekeeping.stop())
        await asyncio.sleep(0)
        assert not stopping.done()
        files.let_go()
        await stopping

    asyncio.run(with_a_slow_disk())
    hosted.store.close()


def test_retention_leaves_a_log_alone_whose_cut_is_not_on_disk(tmp_path: Path) -> None:
    """ST-6: to have it there takes several syncs, which are for a thread and not for the loop."""
    hosted = Hosted(tmp_path)
    cut = hosted.host("cut", segment_bytes="1000", retention_ms="1")
    hosted.fill(cut)
    hosted.store.truncations.begin(cut.topic_partition, 2)
    asyncio.run(hosted.housekeeping._enforce_retention())
    assert cut.log.unsettled is not None
    assert cut.log.log_start_offset == 0
    assert hosted.store.truncations.settle([cut.topic_partition]) == []
    cut.log.settle()
    asyncio.run(hosted.housekeeping._enforce_retention())
    assert cut.log.log_start_offset == 2
    hosted.store.close()
