"""Replica fetchers: real brokers that follow each other over TCP (RE-3, RE-10)."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from barnabas.broker.replication.followed import Followed, Lag
from barnabas.cluster.controller_requests import StopReplica
from barnabas.config import BrokerConfig
from barnabas.protocol.messages.fetch import PartitionData
from barnabas.types import TopicPartition
from tests.kit.broker.following import (
    CONTROLLER_EPOCH,
    NAME,
    WITHIN_S,
    Site,
    leading,
    led,
    level,
    pair,
    relayed,
    run,
    running,
    topic,
)
from tests.kit.processes.broker_process import free_port
from tests.kit.storage.disk import QuickFiles
from tests.kit.waiting import until


def test_a_follower_has_its_leaders_bytes(tmp_path: Path) -> None:
    """RE-3, RE-6: in the leader's order, and what the leader says of the high watermark too."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            for index in range(30):
                one.append(NAME, b"%d" % index, b"x" * index * 100)
                if index % 7 == 0:
                    await asyncio.sleep(0.01)
            await level(one, two)
            assert two.replica(NAME).log.epochs.entries == one.replica(NAME).log.epochs.entries
            await until(lambda: one.replica(NAME).partition.follower_end_offset(2) == 60)
            assert two.fetchers.lag(NAME) == Lag(0, 0)

    run(test)


def test_a_follower_that_comes_late_gets_everything(tmp_path: Path) -> None:
    """Over many segments, and with no turn of the loop that appends more than a megabyte or two."""

    async def test() -> None:
        settings = {"log.segment.bytes": "3000000"}
        async with running(tmp_path, 1, settings) as one, running(tmp_path, 2, settings) as two:
            state = led(1, 1, 2)
            whole = topic("t", *[state] * 8)
            one.hears(whole, one, two)
            names = [TopicPartition("t", index) for index in range(8)]
            for name in names:
                for _ in range(5):
                    one.append(name, *[b"x" * 100_000] * 9)
            two.hears(whole, one, two)
            logs = [two.replica(name).log for name in names]
            sizes = [0]
            wanted_bytes = sum(one.replica(name).log.size_bytes for name in names)
            async with asyncio.timeout(WITHIN_S):
                while sizes[-1] < wanted_bytes:
                    await asyncio.sleep(0)
                    sizes.append(sum(log.size_bytes for log in logs))
            steps = [after - before for before, after in pairwise(sizes)]
            assert max(steps) <= 2 * 1_048_576, "a turn of the loop appended that much"
            for name in names:
                await level(one, two, name)
            assert len(two.replica(NAME).log.segments) == 2

    run(test)


@pytest.mark.slow
def test_a_thousand_partitions_share_a_connection_and_rest(tmp_path: Path) -> None:
    """RE-1: one connection; RE-7: idle, they cost one empty request in each wait."""

    async def test() -> None:
        settings = {"replica.fetch.wait.max.ms": "200"}
        async with relayed(tmp_path, settings) as (one, two, relay):
            whole = topic("t", *[led(1, 1, 2, isr=(1, 2))] * 1000)
            one.hears(whole, one, two)
            two.hears(whole, one, two)
            names = [TopicPartition("t", index) for index in range(1000)]
            for name in names:
                one.append(name, b"a")
            await until(lambda: all(two.end(name) == 1 for name in names))
            await until(lambda: all(two.replica(name).high_watermark == 1 for name in names))
            await relay.quiet()
            before, began = len(relay.requests), time.monotonic()
            await until(lambda: len(relay.requests) >= before + 5)
            idle = relay.requests[before:]
            assert len(idle) <= 2 + (time.monotonic() - began) / 0.2, "one in each wait of 200 ms"
            assert max(idle) < 100, "bytes of a request about nothing"
            assert relay.connections == 1
            assert len(two.fetchers) == 1
            print("1000 partitions on one connection")

    run(test)


def test_a_leader_that_restarts_is_followed_on(tmp_path: Path) -> None:
    """Its fetch session is gone, its epoch and address are the same."""

    async def test() -> None:
        there = {"listeners": f"PLAINTEXT://127.0.0.1:{free_port()}"}
        async with running(tmp_path, 2) as two:
            async with running(tmp_path, 1, there) as one:
                leading(one, two)
                one.append(NAME, b"a")
                await level(one, two)
            await asyncio.sleep(0.3)  # no broker is there: attempts fail
            async with running(tmp_path, 1, there) as one:
                one.hears(topic("t", led(1, 1, 2)), one, two)
                one.append(NAME, b"b")
                await level(one, two)

    run(test)


def test_a_leader_that_comes_back_elsewhere_is_found_by_the_image(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(tmp_path, 2) as two:
            async with running(tmp_path, 1) as one:
                leading(one, two)
                one.append(NAME, b"a")
                await level(one, two)
            async with running(tmp_path, 1) as one:
                leading(one, two)  # the same epoch: nothing for the fetcher but the address
                one.append(NAME, b"b")
                await level(one, two)

    run(test)


def test_a_leader_whose_address_is_not_known_yet(tmp_path: Path) -> None:
    """LeaderAndIsr comes before the first UpdateMetadata."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            whole = topic("t", led(1, 1, 2))
            one.hears(whole, one, two)
            two.hears(whole, two)
            one.append(NAME, b"a")
            await asyncio.sleep(0.2)
            assert two.end(NAME) == 0
            two.hears(whole, one, two)
            await level(one, two)

    run(test)


def test_what_the_next_leader_does_not_have_is_cut_off(tmp_path: Path) -> None:
    """RE-10: by epochs. The old leader wrote what no other broker got, and follows now."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            one.append(NAME, b"a")
            one.append(NAME, b"b")
            await level(one, two)
            two.hears(topic("t", led(-1, 2, 1, 2)), one, two)  # it hears of no leader any more
            await asyncio.sleep(0)
            one.append(NAME, b"lost")
            one.append(NAME, b"lost too")
            log, store = one.replica(NAME).log, one.server.node.replicas.store
            log.roll()
            log.flush()
            store.checkpoint_recovery_points()
            leading(two, one, epoch=3)
            two.append(NAME, b"kept")
            await level(two, one)
            assert one.end(NAME) == 3
            assert log.unsettled is None
            assert [entry.epoch for entry in one.replica(NAME).log.epochs.entries] == [1, 3]
            checkpoint = one.server.log_dirs[0] / "recovery-point-offset-checkpoint"
            assert "t 0 2\n" in checkpoint.read_text()  # moved back before anything was appended

    run(test)


class Unsyncable(QuickFiles):
    """No descriptor is left to sync a file with."""

    __slots__ = ("is_short", "refused")

    def __init__(self) -> None:
        self.is_short = True
        self.refused = 0

    def sync(self, path: Path) -> None:
        if self.is_short:
            self.refused += 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        super().sync(path)


def test_st_10_a_cut_waits_for_descriptors(tmp_path: Path) -> None:
    """Nothing is copied until it is on disk, and no log directory goes offline."""

    async def test() -> None:
        async with pair(tmp_path, {"replica.fetch.backoff.ms": "20"}) as (leader, cut):
            leading(cut, leader)
            cut.append(NAME, b"a")
            await level(cut, leader)
            leader.hears(topic("t", led(-1, 2, 1, 2)), leader, cut)
            await asyncio.sleep(0)
            cut.append(NAME, b"lost")
            log, files = cut.replica(NAME).log, Unsyncable()
            log.truncation._files = files
            leading(leader, cut, epoch=3)
            leader.append(NAME, b"kept")
            await until(lambda: files.refused > 3)
            assert log.unsettled is not None
            assert (log.log_end_offset, log.health.is_failed) == (1, False)
            files.is_short = False
            await level(leader, cut)
            assert cut.end(NAME) == 2
            assert not cut.server.node.replicas.offline

    run(test)


def test_records_lost_by_an_unclean_election_are_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """RE-11: the follower has more that was committed than the leader ever had."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            for _ in range(5):
                one.append(NAME, b"a")
            await level(one, two)
            async with running(tmp_path, 3) as three:
                whole = topic("t", led(3, 2, 2))
                three.hears(whole, two, three)
                three.append(NAME, b"another past")
                two.hears(whole, two, three)
                await level(three, two)
        assert "removes 5 records that had been committed" in caplog.text

    run(test)


def test_a_follower_before_its_leaders_start_begins_there(tmp_path: Path) -> None:
    """What the leader has deleted by now never comes: the follower begins where it begins."""

    async def test() -> None:
        settings = {"log.segment.bytes": "1000", "log.retention.ms": "-1"}
        async with running(tmp_path, 1, settings) as one, running(tmp_path, 2, settings) as two:
            one.hears(topic("t", led(1, 1, 2)), one, two)
            for index in range(10):
                one.append(NAME, b"%d" % index * 900)
            log = one.replica(NAME).log
            log.raise_log_start(7)
            clock = one.server.clock
            log.enforce_retention(clock.monotonic_ms(), 10, clock.wall_ms())
            two.hears(topic("t", led(1, 1, 2)), one, two)
            await until(lambda: two.end(NAME) == 10)
            assert two.replica(NAME).log.log_start_offset == 7
            await level(one, two)

    run(test)


def test_a_follower_behind_its_leaders_end_is_cut_back(tmp_path: Path) -> None:
    """In one epoch, as a leader that lost its disk has it: out of range, and cut to its end."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            for _ in range(5):
                one.append(NAME, b"a")
            await level(one, two)
            two.hears(topic("t", led(-1, 1, 1, 2)), one, two)
            async with running(tmp_path, 3) as three:
                three.hears(topic("t", led(3, 1, 2)), two, three)
                three.append(NAME, b"a")
                two.hears(topic("t", led(3, 2, 2)), two, three)
                three.hears(topic("t", led(3, 2, 2)), two, three)
                await level(three, two)
                assert two.end(NAME) == 1

    run(test)


def test_what_the_leader_has_deleted_is_deleted_here(tmp_path: Path) -> None:
    """ST-10: the follower's log start follows, and the leader hears of it in the next fetch."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            for _ in range(5):
                one.append(NAME, b"a")
            await level(one, two)
            leader = one.replica(NAME)
            leader.log.raise_log_start(3)
            leader.log_start_moved()
            await until(lambda: two.replica(NAME).log.log_start_offset == 3)
            await until(lambda: leader.partition.low_watermark({2}) == 3)

    run(test)


def test_a_new_epoch_of_the_same_leader_goes_on_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            for epoch in range(2, 6):
                one.append(NAME, b"before")
                leading(one, two, epoch)
                one.append(NAME, b"after")
                await level(one, two)
            entries = two.replica(NAME).log.epochs.entries
            assert entries == one.replica(NAME).log.epochs.entries
            assert len(two.fetchers) == 1

    run(test)


def test_a_partition_that_is_led_or_deleted_is_copied_no_longer(tmp_path: Path) -> None:
    """And a leader of which nothing is left to copy is not connected any more."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two, partitions=2)
            one.append(NAME, b"a")
            await level(one, two)
            assert len(two.fetchers) == 1
            two.hears(topic("t", led(2, 2, 1), led(1, 1, 2)), one, two)
            assert two.fetchers.lag(NAME) is None
            other = TopicPartition("t", 1)
            assert two.fetchers.lag(other) is not None
            stop = StopReplica(0, CONTROLLER_EPOCH, (other,), delete=True)
            two.server.node.control.carry_out(stop)
            assert two.fetchers.lag(other) is None
            await until(lambda: len(two.fetchers) == 0)

    run(test)


def other_count(site: Site, count: int) -> BrokerConfig:
    return site.server.config.with_dynamic({"num.replica.fetchers": str(count)}, {})


def test_more_fetchers_share_a_leaders_partitions(tmp_path: Path) -> None:
    """`num.replica.fetchers`, at the start and while the broker runs."""

    async def test() -> None:
        async with pair(tmp_path, {"num.replica.fetchers": "2"}) as (one, two):
            names = [TopicPartition("t", index) for index in range(20)]
            leading(one, two, partitions=20)
            assert len(two.fetchers) == 2
            for count in (3, 1):
                two.fetchers.configure(other_count(two, count))
                await until(lambda count=count: len(two.fetchers) == count)  # type: ignore[misc]
                for name in names:
                    one.append(name, b"a")
                for name in names:
                    await level(one, two, name)

    run(test)


def test_how_far_a_follower_is_behind(tmp_path: Path) -> None:
    """RE-14: in records, and for how long."""

    async def test() -> None:
        settings = {"replica.fetch.max.bytes": "1000", "replica.fetch.response.max.bytes": "1000"}
        async with pair(tmp_path, settings) as (one, two):
            whole = topic("t", led(1, 1, 2))
            one.hears(whole, one, two)
            for _ in range(300):
                one.append(NAME, b"x" * 800)
            assert two.fetchers.lag(NAME) is None
            two.hears(whole, one, two)
            clock = two.server.clock
            seen: list[tuple[int, Lag]] = []
            async with asyncio.timeout(WITHIN_S):
                while two.end(NAME) < 300:
                    lag = two.fetchers.lag(NAME)
                    assert lag is not None
                    if lag.records:
                        seen.append((clock.monotonic_ms(), lag))
                    await asyncio.sleep(0)
            assert max(lag.records for _, lag in seen) >= 290
            waited_ms = seen[-1][0] - seen[0][0]
            assert waited_ms > 20
            assert seen[-1][1].ms >= waited_ms
            await until(lambda: two.fetchers.lag(NAME) == Lag(0, 0))

    run(test)


def copying() -> list[str]:
    """The tasks that copy."""
    return [repr(task) for task in asyncio.all_tasks() if "Fetcher._run" in repr(task)]


def test_a_stopped_fetcher_leaves_nothing_behind(tmp_path: Path) -> None:
    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            one.append(NAME, b"a")
            await level(one, two)
            assert copying()
            await two.fetchers.stop()
            assert not copying()
            one.append(NAME, b"b")
            leading(one, two, epoch=2)  # too late
            await asyncio.sleep(0.1)
            assert two.end(NAME) == 1

    run(test)


def test_a_log_starts_at_no_offset_that_is_not_committed_here(tmp_path: Path) -> None:
    """ST-10: however far the leader says that it has deleted, not above the high watermark."""

    async def test() -> None:
        async with pair(tmp_path) as (one, two):
            leading(one, two)
            one.append(NAME, b"a")
            await level(one, two)
            replica = two.replica(NAME)
            followed = Followed(replica, two.server.node)
            answer = PartitionData(high_watermark=5, log_start_offset=3)
            followed.take(followed.fetch_from(), answer, 0)
            assert replica.log.log_start_offset == replica.high_watermark == 1

    run(test)
