"""The broker's clock: what it says of ages, and what an operator reads of it (ST-6)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from barnabas.broker.runtime.clock_jumps import LASTING_MS
from barnabas.broker.runtime.watched_clock import WatchedClock
from barnabas.broker.seams import system_seams
from barnabas.broker.server import Server
from barnabas.clock import SystemClock
from barnabas.config import BrokerConfig
from barnabas.protocol.api import CREATE_TOPICS
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.records.record import BatchBuilder
from barnabas.types import TopicPartition
from simulation.whole.loop import VirtualLoop
from simulation.whole.seams import VirtualClock
from tests.kit.broker.produces import fill, produce
from tests.kit.clocks import SteppedClock
from tests.kit.raw_client import RawClient
from tests.kit.set_clock import SetClock
from tests.kit.waiting import until

DAY_MS = 86_400_000


def test_it_is_the_clock_that_it_watches() -> None:
    inner = SetClock()
    clock = WatchedClock(inner)
    inner.step(5)
    assert clock.monotonic_ms() == inner.at_ms
    assert clock.wall_ms() == inner.at_ms + 5
    assert clock.trusted_wall_ms() == inner.at_ms + 5


def test_a_jump_is_seen_before_anything_is_removed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """ST-6: also right behind it, before any other task has looked. It is logged once, in words."""
    caplog.set_level(logging.INFO)
    inner = SetClock()
    clock = WatchedClock(inner)
    assert clock.trusted_wall_ms() is not None
    inner.step(30 * DAY_MS - 1)
    assert clock.trusted_wall_ms() is None and clock.trusted_wall_ms() is None
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.getMessage() == (
        "the wall clock has jumped forwards by 30 days 0:00:00: nothing is removed by age "
        "(retention by time, compaction, committed offsets, producer ids, transactional ids) until "
        "the clock has been stable for 5 minutes; set the clock if it is wrong"
    )
    inner.step(1 - 30 * DAY_MS)
    assert clock.trusted_wall_ms() == inner.wall_ms()
    inner.step(-3_600_000)
    assert clock.trusted_wall_ms() is None
    inner.at_ms += LASTING_MS
    assert clock.trusted_wall_ms() == inner.wall_ms()
    assert [each.getMessage() for each in caplog.records[1:]] == [
        "the wall clock has been corrected: removal by age continues",
        "the wall clock has jumped backwards by 1:00:00: nothing is removed by age (retention "
        "by time, compaction, committed offsets, producer ids, transactional ids) until the "
        "clock has been stable for 5 minutes; set the clock if it is wrong",
        "the wall clock has been stable: removal by age continues",
    ]


def test_it_is_looked_at_each_second_until_the_broker_stops(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """ST-6: rounds that are hours apart find a jump that has lasted since it happened."""
    loop = VirtualLoop(1)
    inner = VirtualClock(loop)
    clock = WatchedClock(inner)

    async def hours() -> None:
        clock.start()
        await asyncio.sleep(600)
        inner.step(DAY_MS)
        await asyncio.sleep(2)
        assert len(caplog.records) == 1
        await asyncio.sleep(LASTING_MS / 1_000)
        assert clock.trusted_wall_ms() is not None
        clock.stop()
        inner.step(DAY_MS)
        await asyncio.sleep(60)
        assert len(caplog.records) == 1, "no task looks any more"

    loop.run_until_complete(hours())
    loop.close()


def test_rounds_of_retention_pass_a_wrong_clock_by(tmp_path: Path) -> None:
    """ST-6, on a real disk: a month ahead and back again, and the log begins where it began. The
    rounds went on meanwhile: what is too large was deleted."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "log.retention.check.interval.ms": "100",
        "log.segment.bytes": "1000",
    }

    async def whole() -> None:
        inner = SteppedClock()
        server = Server(BrokerConfig(settings), system_seams()._replace(clock=inner))
        await server.start()

        def begin(topic: str) -> int:
            log = server.node.replicas.leader_of(TopicPartition(topic, 0)).log
            assert log.log_end_offset == 4
            return log.log_start_offset

        try:
            write = partial(_write, server.port, SystemClock().wall_ms())
            await asyncio.to_thread(write, "young")
            for topic, by_ms in (("ahead", 30 * DAY_MS), ("right", -30 * DAY_MS)):
                inner.step(by_ms)
                await asyncio.to_thread(write, topic, {"retention.bytes": "0"})
                await until(lambda name=topic: begin(name) == 4)  # type: ignore[misc]
                assert begin("young") == 0
        finally:
            await server.stop()

    asyncio.run(whole())


def _write(port: int, at_ms: int, topic: str, configs: Mapping[str, str] | None = None) -> None:
    """Four records of that time, each in a segment of its own."""
    wanted = CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=n, value=v) for n, v in (configs or {}).items()],
    )
    with RawClient(f"127.0.0.1:{port}") as client:
        answer = client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted]))
        assert answer.topics[0].error_code == 0, answer
        for _ in range(4):
            batch = BatchBuilder()
            batch.append(at_ms, None, bytes(600))
            fill(client, topic, batch.build())


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_clock_that_is_wrong_at_the_start_removes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_clean: bool
) -> None:
    """ST-6, TX-1: a retry is recognised, and old records stay, until the new time has lasted."""
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
        "log.retention.check.interval.ms": "100",
        "producer.id.expiration.check.interval.ms": "100",
        "log.segment.bytes": "1000",
    }
    caplog.set_level(logging.INFO)
    at_ms = SystemClock().wall_ms()
    sent = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=0)
    sent.append(at_ms, None, b"once")
    retried = sent.build()

    def offset(port: int) -> int:
        with RawClient(f"127.0.0.1:{port}") as client:
            answer = produce(client, "young", bytes(retried))
            assert answer.error_code == 0
            return answer.base_offset

    async def life(by_ms: int) -> int:
        inner = SteppedClock()
        inner.step(by_ms)
        server = Server(BrokerConfig(settings), system_seams()._replace(clock=inner))
        await server.start()
        try:
            if not by_ms:
                await asyncio.to_thread(_write, server.port, at_ms, "young")
                return await asyncio.to_thread(offset, server.port)
            log = server.node.replicas.leader_of(TopicPartition("young", 0)).log
            configs = {"retention.bytes": "0"}
            await asyncio.to_thread(_write, server.port, at_ms, "large", configs)
            large = server.node.replicas.leader_of(TopicPartition("large", 0)).log
            await until(lambda: large.log_start_offset == 4)  # the rounds go on
            assert log.log_start_offset == 0
            return await asyncio.to_thread(offset, server.port)
        finally:
            await (server.stop() if is_clean else server.abandon())

    assert asyncio.run(life(0)) == 4
    assert asyncio.run(life(30 * DAY_MS)) == 4, "it is not stored twice"
    assert "after the latest time recorded by this broker" in caplog.text
