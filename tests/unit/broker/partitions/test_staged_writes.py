"""Flushes that records wait for (`flush.messages`, ST-10): what counts while one is under way."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.broker.handlers.produce import ACKS_ALL, settle
from barnabas.broker.partitions.replica import Replica
from barnabas.errors import KafkaStorageError
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.replication.follower_state import FollowerFetch
from tests.kit.broker.hosting import HeldFiles, Hosted
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import until

FLUSHED = {"flush_messages": "1"}


def is_log(path: Path) -> bool:
    return path.suffix == ".log"


def answer_to(replica: Replica, end_offset: int, acks: int) -> asyncio.Future[int]:
    """What a producer is answered whose batch ends there: an error code, when it is answered."""
    answer = PartitionProduceResponse(index=0)
    later = settle(ProduceResponse(responses=[]), [(replica, end_offset, answer)], acks, 60_000)

    async def code() -> int:
        if not isinstance(later, ProduceResponse):
            await later
        return answer.error_code

    return asyncio.ensure_future(code())


@pytest.mark.parametrize("acks", [1, ACKS_ALL])
def test_st_10_a_steady_stream_holds_up_no_acknowledgement(tmp_path: Path, acks: int) -> None:
    """PR-4: there is always one more record that was appended during the sync before."""
    files = HeldFiles()
    hosted = Hosted(tmp_path, files)

    async def stream() -> None:
        replica = hosted.host("t", **FLUSHED)
        files.is_held = is_log
        answers = [answer_to(replica, hosted.append(replica), acks)]
        for done in range(5):
            await until(lambda done=done: files.arrived == done + 1)
            answers.append(answer_to(replica, hosted.append(replica), acks))
            assert not answers[done].done(), "it is not on disk"
            files.pass_one()
            assert await asyncio.wait_for(answers[done], PATIENCE_S) == 0
            assert replica.high_watermark == replica.log.recovery_point == done + 1
        files.let_go()
        assert await answers[-1] == 0

    asyncio.run(stream())
    hosted.store.close()


def test_st_10_what_needs_no_flush_counts_at_the_end_of_one(tmp_path: Path) -> None:
    """`flush.messages=2`: the third record waits for the sync of two, and for no other."""
    files = HeldFiles()
    hosted = Hosted(tmp_path, files)

    async def three_records() -> None:
        replica = hosted.host("t", flush_messages="2")
        files.is_held = is_log
        hosted.append(replica)
        assert replica.high_watermark == 1
        hosted.append(replica)
        await until(lambda: files.arrived == 1)
        hosted.append(replica)
        assert replica.high_watermark == 1
        files.pass_one()
        await hosted.flushed(replica)
        assert (replica.high_watermark, replica.log.recovery_point) == (3, 2)
        files.let_go()

    asyncio.run(three_records())
    hosted.store.close()


@pytest.mark.parametrize("acks", [1, ACKS_ALL])
def test_st_10_a_sync_that_fails_is_no_acknowledgement(tmp_path: Path, acks: int) -> None:
    files = HeldFiles()
    hosted = Hosted(tmp_path, files)

    async def fail() -> int:
        replica = hosted.host("t", **FLUSHED)
        files.is_held = is_log
        answer = answer_to(replica, hosted.append(replica), acks)
        await until(lambda: files.arrived == 1)
        replica.log.directory.joinpath(f"{0:020}.log").unlink()  # its disk has lost it
        files.pass_one()
        return await asyncio.wait_for(answer, PATIENCE_S)

    assert asyncio.run(fail()) == KafkaStorageError.code
    assert hosted.has_failed


def test_st_10_a_flush_outlives_the_leadership_in_which_it_began(tmp_path: Path) -> None:
    """What it has covered may have been cut off since, and written again."""
    files = HeldFiles()
    hosted = Hosted(tmp_path, files)

    async def lead_again() -> None:
        replica = hosted.host("t", **FLUSHED)
        name = replica.topic_partition
        hosted.append(replica)
        await hosted.flushed(replica)
        files.is_held = is_log
        hosted.append(replica)
        hosted.append(replica)
        await until(lambda: files.arrived == 1)
        hosted.change_leader(replica, leader=1, replicas=(0, 1))
        files.is_held = lambda _: False  # the cut syncs too
        replica.partition.on_truncated(1)
        hosted.store.truncations.truncate(name, 1)
        files.is_held = is_log
        hosted.change_leader(replica, leader=0, replicas=(0, 1))
        hosted.append(replica)
        files.pass_one()
        await until(lambda: files.arrived == 2)
        assert replica.partition.log_end_offset == 1, "the new record is not on disk"
        files.let_go()
        await hosted.flushed(replica)
        assert replica.partition.log_end_offset == replica.log.recovery_point == 2
        replica.on_fetch(FollowerFetch(1, 2), 0)
        assert replica.high_watermark == 2

    asyncio.run(lead_again())
    hosted.store.close()


def test_st_10_followers_count_no_sooner_for_it(tmp_path: Path) -> None:
    """RE-4: the watermark passes what is on the leader's disk and on each follower."""
    files = HeldFiles()
    hosted = Hosted(tmp_path, files)

    async def follow() -> None:
        replica = hosted.host("t", replicas=(0, 1), **FLUSHED)
        files.is_held = is_log
        hosted.append(replica)
        await until(lambda: files.arrived == 1)
        hosted.append(replica)
        replica.on_fetch(FollowerFetch(1, 2), 0)
        assert replica.high_watermark == 0
        files.pass_one()
        await until(lambda: files.arrived == 2)
        assert replica.high_watermark == 1
        files.let_go()
        await hosted.flushed(replica)
        assert replica.high_watermark == 2

    asyncio.run(follow())
    hosted.store.close()
