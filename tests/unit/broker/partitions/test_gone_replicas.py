"""Replicas that are deleted, or deleted and made again, while a task works on them: that is no
matter of disks, and does not end its work on the others (ST-10)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.protocol.api import DELETE_TOPICS
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.storage.log_health import LogAbandoned
from tests.kit.broker.hosting import HeldFiles, Hosted
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient
from tests.kit.waiting import until

OLD = {"segment_bytes": "1000", "retention_ms": "1"}


def recreate(hosted: Hosted, topic: str, *, again: bool) -> None:
    hosted.delete(topic)
    if again:
        hosted.host(topic, **OLD)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("duty", ["_enforce_retention", "_purge_deleted", "_expire_producers"])
def test_st_10_a_deletion_ends_no_round_and_fails_no_directory(
    tmp_path: Path, duty: str, again: bool
) -> None:
    hosted = Hosted(tmp_path)
    one, two, three = (hosted.host(topic, **OLD) for topic in ("one", "two", "three"))
    for replica in (one, two, three):
        hosted.fill(replica)
    if duty == "_purge_deleted":  # of what the retention has taken out
        asyncio.run(hosted.housekeeping._enforce_retention())

    async def round_with_a_deletion() -> None:
        action: Callable[[], Awaitable[None]] = getattr(hosted.housekeeping, duty)
        going = asyncio.ensure_future(action())
        await asyncio.sleep(0)  # it has begun, and walks what was there then
        recreate(hosted, "two", again=again)
        await going

    asyncio.run(round_with_a_deletion())
    assert not hosted.has_failed
    if duty == "_enforce_retention":
        assert three.log.log_start_offset == 3, "nothing was done for the others"
    hosted.store.close()


@pytest.mark.parametrize("again", [False, True])
def test_st_10_a_deletion_during_a_flush_fails_no_directory(tmp_path: Path, again: bool) -> None:
    files = HeldFiles()
    hosted = Hosted(tmp_path, files)
    flushed = {"flush_messages": "1"}

    async def delete_during_a_flush() -> None:
        replica = hosted.host("t", **flushed)
        files.is_held = lambda path: path.suffix == ".log"
        hosted.append(replica)
        await until(lambda: files.arrived == 1)
        hosted.append(replica)  # so that one flush is not enough
        hosted.delete("t")
        if again:
            hosted.host("t", **flushed)
        files.let_go()
        await hosted.flushed(replica)

    asyncio.run(delete_during_a_flush())
    assert not hosted.has_failed
    hosted.store.close()


def test_st_10_a_reader_of_a_deleted_log_learns_that_it_is_gone(tmp_path: Path) -> None:
    hosted = Hosted(tmp_path)
    replica = hosted.host("t")
    end_offset = hosted.append(replica)
    hosted.delete("t")
    hosted.host("t")
    with pytest.raises(LogAbandoned):
        replica.log.read(0, 100, end_offset)
    with pytest.raises(LogAbandoned):
        replica.log.enforce_retention(0, 0, 0)
    try:
        replica.log.flush()
    except OSError as error:
        replica.fail(error)
    replica.fail(OSError(5, "EIO"))
    assert not hosted.has_failed
    hosted.store.close()


@pytest.mark.thorough
def test_st_10_topics_come_and_go_while_retention_runs() -> None:
    """Some hundred partitions, looked at ten times a second."""
    config = {"log.retention.check.interval.ms": "100", "log.segment.delete.delay.ms": "100"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "lasting", 300)
        for _ in range(60):
            create(client, "passing", 3)
            request = DeleteTopicsRequest(topic_names=["passing"], timeout_ms=60_000)
            assert client.call(DELETE_TOPICS, 5, request).responses[0].error_code == 0
        assert not broker.server.node.replicas.store.directories.failed
        assert broker.server.failure is not None
        assert not broker.server.failure.done()
