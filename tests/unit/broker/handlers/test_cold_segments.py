"""Segments that were not looked into for long: no file of theirs is opened or read on the loop
before a thread has done so (UX-4). The disk here says who was there first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.protocol.api import CREATE_TOPICS, FETCH, LIST_OFFSETS
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.storage.files import Bytes, File, OsFile, OsFiles
from tests.kit.broker.fetches import fetch_request, only, values
from tests.kit.broker.loops import inside, log_of
from tests.kit.broker.produces import produce
from tests.kit.raw_client import RawClient, batch

SEGMENTS = 60
T0 = 1_700_000_000_000
LOOP = "barnabas-broker"


class SlowFile(OsFile):
    """A file outside the page cache; `disk` records the reads."""

    __slots__ = ("disk", "path")

    disk: SlowDisk
    path: Path

    def pread(self, size: int, position: int) -> bytes:
        self.disk.touched(self.path)
        return super().pread(size, position)

    def is_cached(self, position: int, size: int) -> bool:
        return self.path in self.disk.warm

    def write(self, position: int, data: Bytes) -> None:
        raise AssertionError(f"{self.path} is only read here")


class SlowDisk(OsFiles):
    """Every file is cold until a thread has opened it."""

    __slots__ = ("inside", "warm")

    def __init__(self) -> None:
        self.warm: set[Path] = set()
        self.inside: list[Path] = []
        """Cold files that the loop has waited for."""

    def open(self, path: Path, *, create: bool = False) -> File:
        self.touched(path)
        opened = super().open(path, create=create)
        file = SlowFile(opened.fileno())
        opened._holders = 0  # type: ignore[attr-defined]
        file.disk, file.path = self, path
        return file

    def touched(self, path: Path) -> None:
        if threading.current_thread().name != LOOP:
            self.warm.add(path)
        elif path not in self.warm:
            self.inside.append(path)


@pytest.fixture
def node() -> Iterator[Broker]:
    """Each test has its own topic `t`."""
    with Broker() as broker:
        yield broker


@pytest.fixture
def cold(node: Broker, client: RawClient) -> Iterator[SlowDisk]:
    """The log of the topic `t`, a segment for each of its records, as after a restart."""
    configs = [
        CreatableTopicConfig(name="segment.bytes", value="110"),
        CreatableTopicConfig(name="index.interval.bytes", value="0"),
    ]
    wanted = CreatableTopic(name="t", num_partitions=1, replication_factor=1, configs=configs)
    client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
    for i in range(SEGMENTS):
        produced = produce(client, "t", batch(b"%d" % i, timestamp_ms=T0 + 10 * i))
        assert produced.error_code == 0
    disk = SlowDisk()

    def forget() -> int:
        log: Any = log_of(node)
        log.segments[-1].write_out()
        log.release()
        log._segments._opened = ()
        for segment in log.segments:
            segment._max_timestamp = None
            for one in (segment, segment.offset_index, segment.time_index):
                one._files = disk
            segment.time_index._last = segment.offset_index._last = None
        return len(log.segments)

    assert inside(node, forget) == SEGMENTS
    yield disk


def find(client: RawClient, timestamp: int, version: int = 7) -> tuple[int, int]:
    wanted = ListOffsetsPartition(timestamp=timestamp, max_num_offsets=1)
    asked = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[wanted])]
    )
    row = client.call(LIST_OFFSETS, version, asked).topics[0].partitions[0]
    assert row.error_code == 0
    return row.offset, row.timestamp


def test_a_search_by_time_is_a_threads(client: RawClient, cold: SlowDisk) -> None:
    """ST-4: the indexes of all segments, opened and read, are not the loop's business."""
    assert find(client, T0 + 501) == (51, T0 + 510)
    assert find(client, T0 + 10 * SEGMENTS) == (-1, -1)
    assert find(client, -3) == (SEGMENTS - 1, T0 + 10 * (SEGMENTS - 1))
    find(client, T0, version=0)
    assert len(cold.warm) >= SEGMENTS
    assert not cold.inside


@pytest.mark.parametrize("isolation_level", [0, 1])
@pytest.mark.parametrize("max_bytes", [1, 5_000])
def test_a_fetch_opens_nothing_cold_on_the_loop(
    client: RawClient, cold: SlowDisk, max_bytes: int, isolation_level: int
) -> None:
    for offset in (0, 37, SEGMENTS - 1):
        wanted = fetch_request(
            "t", offset, max_bytes=max_bytes, isolation_level=isolation_level, max_wait_ms=0
        )
        wanted.topics[0].partitions[0].partition_max_bytes = max_bytes
        found = values(only(client.call(FETCH, 11, wanted)))
        assert found[0] == b"%d" % offset
        assert len(found) == (1 if max_bytes == 1 else min(len(found), SEGMENTS - offset))
    assert not cold.inside


def test_what_went_meanwhile_is_looked_for_again(node: Broker, client: RawClient) -> None:
    """A segment that retention takes while a thread searches is no failure of the disk."""
    wanted = CreatableTopic(
        name="shrinking",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name="segment.bytes", value="110")],
    )
    client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
    for i in range(10):
        produce(client, "shrinking", batch(b"%d" % i, timestamp_ms=T0 + i))

    def search() -> tuple[bool, bool, Any]:
        log = node.server.node.replicas.leader_of(("shrinking", 0)).log
        from barnabas.storage.cold_lookups import timestamp_lookup

        stale = timestamp_lookup(log, T0 + 3)
        log.raise_log_start(8)
        log.enforce_retention(T0, log.log_end_offset, T0)
        fresh = timestamp_lookup(log, T0 + 3)
        fresh.run()
        return stale.is_of(log), fresh.is_of(log), fresh.found

    was_of, is_of, found = inside(node, search)
    assert (was_of, is_of) == (False, True)
    assert found.offset == 8
