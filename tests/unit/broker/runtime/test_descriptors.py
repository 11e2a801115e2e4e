"""A broker that runs out of file descriptors: what needs one is refused with an error after which
clients try again, or is put off; nothing goes offline, and it is said once (ST-10)."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path

import pytest

from barnabas.broker.coordinator import shards
from barnabas.broker.partitions import role_changes
from barnabas.broker.partitions.replica import Replica
from barnabas.broker.runtime.descriptors import Descriptors, of_this_process
from barnabas.cluster.controller_requests import StopReplica
from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.errors import CoordinatorLoadInProgress, NotLeaderOrFollower, UnknownTopicOrPartition
from barnabas.types import TopicPartition
from tests.kit.broker.connections import FakeClock, limited
from tests.kit.broker.hosting import Hosted
from tests.kit.broker.tallies import NAME, answered, run, started
from tests.kit.storage.scarce import ScarceFiles, at_each_call, without_descriptors
from tests.kit.waiting import until

T = TopicPartition("t", 0)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was put off is tried again at once."""
    monkeypatch.setattr(role_changes, "_AGAIN_AFTER_S", 0.01)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What an operator reads of it."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.ERROR and "Too many open files" in record.getMessage()
    ]


def append(hosted: Hosted, replica: Replica, size: int) -> None:
    """As a producer does: what is refused is sent again."""
    try:
        hosted.append(replica, size)
    except OSError as error:
        replica.fail(error)
        hosted.append(replica, size)


@pytest.mark.thorough
def test_st_10_nothing_goes_offline_whichever_call_is_refused(tmp_path: Path) -> None:
    settings = {"segment_bytes": "700", "retention_ms": "1", "flush_messages": "2"}
    for number, files in enumerate(at_each_call()):
        refused_call, files.refused_call = files.refused_call, -1
        hosted = Hosted(tmp_path / str(number), files)
        files.calls, files.refused_call = 0, refused_call

        async def live(hosted: Hosted = hosted) -> None:
            hosted.name("t", **settings)
            await until(lambda: not hosted.role_changes.deferred)
            replica = hosted.replicas.leader_of(T)
            for _ in range(3):
                append(hosted, replica, 500)
                await hosted.flushed(replica)
            hosted.change_leader(replica, leader=0, replicas=(0,))
            await until(lambda: not hosted.role_changes.deferred)
            duties = hosted.housekeeping
            for duty in (
                duties._enforce_retention,
                duties._flush_rolled,
                duties._checkpoint_recovery_points,
                duties._checkpoint_high_watermarks,
                duties._purge_deleted,
                duties._purge_deleted,
            ):
                try:
                    await duty()
                except OSError as error:
                    assert hosted.replicas.is_short_of_descriptors(error)
            append(hosted, replica, 500)
            await hosted.flushed(replica)
            assert replica.high_watermark == 4

        asyncio.run(live())
        assert not hosted.has_failed
        assert hosted.replicas.offline == frozenset()
        files.refused_call = -1
        hosted.store.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_st_10_a_shortage_is_said_once(
    number: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The process has none left, or the whole machine."""
    files = ScarceFiles(number)
    hosted = Hosted(tmp_path, files)
    replica = hosted.host("t")
    files.has_none = True
    for _ in range(5):
        with pytest.raises(OSError, match="Too many open files") as caught:
            hosted.append(replica)
        replica.fail(caught.value)
    assert len(said(caplog)) == 1
    files.has_none = False
    assert hosted.append(replica) == 1
    hosted.store.close()


@pytest.mark.parametrize("is_stopped", [False, True])
def test_st_10_a_partition_that_cannot_be_made_is_made_later(
    tmp_path: Path, is_stopped: bool
) -> None:
    files = ScarceFiles()
    hosted = Hosted(tmp_path, files)

    async def make_later() -> None:
        files.has_none = True
        hosted.name("t")
        with pytest.raises((NotLeaderOrFollower, UnknownTopicOrPartition)):
            hosted.replicas.leader_of(T)
        assert len(hosted.role_changes.deferred) == 1
        if is_stopped:
            hosted.role_changes.deferred.forget([T])
            hosted.role_changes.apply_stop_replica(StopReplica(1, 1, (T,), delete=True))
        files.has_none = False
        await until(lambda: is_stopped or bool(len(hosted.replicas)))
        await hosted.role_changes.deferred.close()
        assert [each.topic_partition for each in hosted.replicas] == ([] if is_stopped else [T])

    asyncio.run(make_later())
    assert not hosted.has_failed
    hosted.store.close()


def test_st_10_acknowledgements_wait_for_a_descriptor_to_sync_with(tmp_path: Path) -> None:
    files = ScarceFiles()
    hosted = Hosted(tmp_path, files)

    async def flush_later() -> None:
        replica = hosted.host("t", flush_messages="1")
        hosted.append(replica)
        await hosted.flushed(replica)
        files.has_none = True
        hosted.append(replica)  # its file is open
        await until(lambda: files.refused >= 2)
        assert replica.high_watermark == 1
        files.has_none = False
        await hosted.flushed(replica)
        assert replica.high_watermark == 2

    asyncio.run(flush_later())
    assert not hosted.has_failed
    hosted.store.close()


def test_st_10_what_a_coordinator_cannot_write_has_not_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shard stays, or is loaded when it can be read."""
    monkeypatch.setattr(shards, "_AGAIN_AFTER_S", 0.01)

    async def test(directory: Path) -> None:
        async with started(directory) as node:
            node.lead(0, 1)
            assert await node.answer(node.put(NAME, 1)) == answered(1)
            files = without_descriptors(node.replicas.leader_of((GROUP_TOPIC, 0)).log)
            assert (await node.answer(node.put(NAME, 2))).error_code != 0
            assert not node.store.directories.failed
            node.lead(0, 2)
            before = files.refused
            await until(lambda: files.refused > before + 2)
            with pytest.raises(CoordinatorLoadInProgress):
                node.shards.shard_of(NAME)
            files.has_none = False
            await until(lambda: node.shards.ready)
            assert await node.answer(node.get(NAME)) == answered(1)
            assert await node.answer(node.put(NAME, 3)) == answered(3)

    run(test, tmp_path)


# --- connections ---------------------------------------------------------------------------------


def test_the_last_descriptors_are_kept_from_connections(caplog: pytest.LogCaptureFixture) -> None:
    """UX-4: and that is said once, as is the end of it."""
    caplog.set_level(logging.INFO)
    left = 40
    connections = limited(FakeClock(), descriptors=lambda: Descriptors(160, left))
    accepted = 0
    while not connections.wait_ms("PLAINTEXT"):
        connections.on_opened("PLAINTEXT", "127.0.0.1")
        left -= 1
        accepted += 1
    assert (accepted, left) == (21, 19), "an eighth of them is kept"
    for _ in range(3):
        assert connections.wait_ms("PLAINTEXT") > 0
    assert len([line for line in caplog.messages if "accepting no connections" in line]) == 1
    left = 30
    assert connections.wait_ms("PLAINTEXT") == 0
    assert "accepting connections again: 30 file descriptors are free" in caplog.messages


def test_open_descriptors_are_counted(tmp_path: Path) -> None:
    before = of_this_process()
    with (tmp_path / "file").open("w"), (tmp_path / "file").open():
        found = of_this_process()
    assert found.limit == before.limit
    assert before.left - found.left == 2 or found.limit == 1 << 30


def test_st_10_what_was_put_off_waits_until_a_request_is_carried_out(tmp_path: Path) -> None:
    """The steps of both would mix otherwise."""
    files = ScarceFiles()
    hosted = Hosted(tmp_path, files)

    async def make_later() -> None:
        files.has_none = True
        hosted.name("t")
        files.has_none = False
        async with hosted.role_changes.line:
            await asyncio.sleep(0.1)  # it would be made after 0.01 s
            assert len(hosted.role_changes.deferred) == 1
        await until(lambda: not hosted.role_changes.deferred)
        assert hosted.replicas.leader_of(T)
        await hosted.role_changes.deferred.close()

    asyncio.run(make_later())
    hosted.store.close()
