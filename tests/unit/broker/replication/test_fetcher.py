"""One fetcher in trouble: lost connections and sessions, disks, damage, and mistakes of ours."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from barnabas.cluster.image import Endpoint
from barnabas.protocol.api import LIST_OFFSETS
from barnabas.types import TopicPartition
from tests.kit.broker.following import NAME, leading, led, level, pair, relayed, run, topic
from tests.kit.storage.scarce import without_descriptors
from tests.kit.waiting import until


@pytest.mark.parametrize("epoch", [1, 2])
def test_who_asked_for_bounds_when_the_connection_was_lost_asks_again(
    tmp_path: Path, epoch: int
) -> None:
    """In the same epoch, or in a new one that began meanwhile."""

    async def test() -> None:
        async with relayed(tmp_path) as (one, two, relay):
            one.hears(topic("t", led(1, 1, 2)), one, two)
            for index in range(10):
                one.append(NAME, b"%d" % index)
            one.replica(NAME).log.raise_log_start(7)
            relay.holds = LIST_OFFSETS.key
            two.hears(topic("t", led(1, 1, 2)), one, two)
            await until(lambda: relay.is_holding)
            leading(one, two, epoch)
            relay.drop()
            await until(lambda: two.end(NAME) == 10)
            assert two.replica(NAME).log.log_start_offset == 7

    run(test)


def test_a_partition_in_trouble_holds_up_no_other(tmp_path: Path) -> None:
    """The leader does not lead it yet: it is asked again after a while, on its own."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            state = led(1, 1, 2)
            one.hears(topic("t", state), one, two)
            two.hears(topic("t", state, state), one, two)
            for _ in range(20):
                one.append(NAME, b"a")
                await level(one, two)
            other = TopicPartition("t", 1)
            one.hears(topic("t", state, state), one, two)
            one.append(other, b"b")
            await level(one, two, other)

    run(test)


def test_a_partition_in_trouble_is_not_asked_for_all_the_time(tmp_path: Path) -> None:
    """A leader answers an error at once: left in the session it would make it a busy loop."""

    async def test() -> None:
        async with relayed(tmp_path) as (one, two, relay):
            state = led(1, 1, 2)
            one.hears(topic("t", state), one, two)
            two.hears(topic("t", state, state), one, two)
            one.append(NAME, b"a")
            await level(one, two)
            before = len(relay.requests)
            began = time.monotonic()
            await asyncio.sleep(0.5)
            asked = len(relay.requests) - before
            assert asked <= 40 * (time.monotonic() - began)  # two for each rest of 100 ms

    run(test)


def test_no_partition_waits_while_another_backs_off(tmp_path: Path) -> None:
    """A new partition, or a new epoch, is fetched at once, whatever rests meanwhile."""

    async def test() -> None:
        settings = {"replica.fetch.backoff.ms": "3600000"}
        async with pair(tmp_path, settings) as (one, two):
            state = led(1, 1, 2)
            one.hears(topic("t"), one, two)
            two.hears(topic("t", state), one, two)
            await asyncio.sleep(0.2)  # refused by now: the leader has no such partition
            other = TopicPartition("t", 1)
            one.hears(topic("t", state, state), one, two)
            two.hears(topic("t", state, state), one, two)
            one.append(other, b"b")
            await level(one, two, other)
            assert two.end(NAME) == 0
            leading(one, two, epoch=2, partitions=2)
            one.append(NAME, b"a")
            await level(one, two)

    run(test)


def test_a_lost_connection_is_made_again_and_all_partitions_sent_again(tmp_path: Path) -> None:
    """Whether the leader's session has heard the last request is not known."""

    async def test() -> None:
        async with relayed(tmp_path) as (one, two, relay):
            leading(one, two, partitions=10)
            one.append(NAME, b"a")
            await level(one, two)
            await relay.quiet()
            before = len(relay.requests)
            relay.drop()
            await until(lambda: len(relay.requests) > before)
            assert relay.requests[before] > 300, "bytes of a request about ten partitions"
            assert relay.connections == 2
            one.append(NAME, b"b")
            await level(one, two)

    run(test)


def test_a_session_that_the_leader_dropped_is_begun_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """On the same connection, and no failure is logged."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            one.append(NAME, b"a")
            await level(one, two)
            sessions = one.server.node.fetch_sessions
            for session in list(sessions):
                sessions.close(session.session_id)
            one.append(NAME, b"b")
            await level(one, two)
            await until(lambda: len(sessions) == 1)
            assert "cannot fetch" not in caplog.text

    run(test)


def test_what_is_to_be_flushed_is_not_acknowledged_before(tmp_path: Path) -> None:
    """ST-10: with flush.messages the next fetch, which acknowledges, waits for the disk."""

    async def test() -> None:
        settings = {"log.flush.interval.messages": "1"}
        async with pair(tmp_path, settings) as (one, two):
            leading(one, two)
            one.append(NAME, b"a")
            await level(one, two)
            await until(lambda: two.replica(NAME).log.recovery_point == 1)
            disk_answers = threading.Event()
            executor = ThreadPoolExecutor(1)
            replicas = two.server.node.replicas
            replicas.threads = replicas.threads._replace(flushes=executor)
            busy = asyncio.get_running_loop().run_in_executor(executor, disk_answers.wait)
            try:
                one.append(NAME, b"b")
                await until(lambda: two.end(NAME) == 2)
                await asyncio.sleep(0.1)
                assert one.replica(NAME).partition.follower_end_offset(2) == 1
            finally:
                disk_answers.set()
                await busy
            await until(lambda: one.replica(NAME).partition.follower_end_offset(2) == 2)
            assert two.replica(NAME).log.recovery_point == 2

    run(test)


def test_a_directory_that_fails_takes_its_partitions_along_and_no_others(tmp_path: Path) -> None:
    """ST-10: the fetcher goes on with those in the other directory."""

    async def test() -> None:
        both = f"{tmp_path / 'first'},{tmp_path / 'second'}"
        async with pair(tmp_path, {"log.dirs": both}) as (one, two):
            leading(one, two, partitions=2)
            other = TopicPartition("t", 1)
            for name in (NAME, other):
                one.append(name, b"a")
                await level(one, two, name)
            lost = two.replica(other).log
            assert lost.directory.parent != two.replica(NAME).log.directory.parent
            lost.release()
            (segment,) = lost.directory.glob("*.log")
            segment.unlink()
            segment.mkdir()  # a file that cannot be opened, for root either
            one.append(other, b"b")
            await until(lambda: other in two.server.node.replicas.offline)
            assert two.fetchers.lag(other) is None
            one.append(NAME, b"b")
            await level(one, two)

    run(test)


def test_a_follower_without_descriptors_asks_again(tmp_path: Path) -> None:
    """ST-10: its log was idle, and has no file open."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            one.append(NAME, b"a")
            await level(one, two)
            files = without_descriptors(two.replica(NAME).log)
            one.append(NAME, b"b")
            await until(lambda: files.refused)
            assert not two.server.node.replicas.offline
            files.has_none = False
            await level(one, two)

    run(test)


def test_records_that_are_damaged_are_refused_and_asked_for_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What a leader's disk has made of a batch does not come into another log."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            whole = topic("t", led(1, 1, 2))
            one.hears(whole, one, two)
            one.append(NAME, b"a" * 100)
            (segment,) = one.replica(NAME).log.directory.glob("*.log")
            good = segment.read_bytes()
            with segment.open("r+b") as file:
                file.seek(len(good) - 20)
                file.write(b"#")
            two.hears(whole, one, two)
            await until(lambda: "fails its checksum" in caplog.text)
            assert two.end(NAME) == 0
            with segment.open("r+b") as file:
                file.write(good)
            await level(one, two)

    run(test)


def test_a_mistake_of_ours_stops_one_partition_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two, partitions=2)
            other = TopicPartition("t", 1)
            for name in (NAME, other):
                one.append(name, b"a")
                await level(one, two, name)
            log = two.replica(other).log
            epochs, log.epochs = log.epochs, None  # type: ignore[assignment]
            one.append(other, b"b")
            await until(lambda: "t-1 is no longer fetched" in caplog.text)
            log.epochs = epochs
            one.append(NAME, b"b")
            await level(one, two)
            assert two.end(other) == 1
            leading(one, two, epoch=2, partitions=2)
            await level(one, two, other)

    run(test)


def test_a_mistake_of_ours_elsewhere_does_not_end_the_fetcher(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        settings = {"replica.fetch.backoff.ms": "1500"}
        async with pair(tmp_path, settings) as (one, two):
            state = led(1, 1, 2)
            one.hears(topic("t", state), one, two)
            two.hears(topic("t", state, state), one, two)
            await asyncio.sleep(0.5)  # refused by now, and left out until its rest is over
            log = two.replica(TopicPartition("t", 1)).log
            epochs, log.epochs = log.epochs, None  # type: ignore[assignment]
            await until(lambda: "failed; restarting the fetcher" in caplog.text)
            log.epochs = epochs
            for _ in range(3):
                one.append(NAME, b"a")
                await level(one, two)

    run(test)


def test_an_unreachable_leader_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        caplog.set_level(logging.INFO)
        async with pair(tmp_path) as (one, two):
            nowhere = Endpoint("PLAINTEXT", "127.0.0.1", 1, "PLAINTEXT")
            image = one.image
            one.reached_by(1)
            leading(one, two)
            assert one.image.endpoints == (nowhere,)
            await until(lambda: "cannot fetch" in caplog.text)
            await asyncio.sleep(0.6)
            said = [each for each in caplog.records if "cannot fetch" in each.getMessage()]
            assert len(said) == 1
            assert "cannot fetch 1 partition from broker 1" in said[0].getMessage()
            one.reached_by(image.endpoints[0].port)
            leading(one, two)
            one.append(NAME, b"a")
            await level(one, two)
            assert "fetching from broker 1 again" in caplog.text

    run(test)
