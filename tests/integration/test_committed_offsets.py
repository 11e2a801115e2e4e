"""Committed offsets outlive what happens to the broker, and a person can read them."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from barnabas.errors import CoordinatorLoadInProgress, CorruptData
from barnabas.protocol.api import CREATE_TOPICS, FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResponse,
    OffsetFetchRequest,
)
from tests.kit.processes.broker_process import BrokerProcess, broker_process
from tests.kit.processes.command_line import COMMAND, with_settings
from tests.kit.raw_client import RawClient, once_found, once_loaded
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.secured

TOPIC = "t"
IN_PARTITION_6 = "MrATooConsumer"  # of the 50 that `__consumer_offsets` has by default
PATIENCE_S = 120


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with broker_process(tmp_path) as process:
        with RawClient(process.bootstrap_servers) as client:
            wanted = CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)
            client.call(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000))
            find = FindCoordinatorRequest(key=IN_PARTITION_6)
            once_found(lambda: client.call(FIND_COORDINATOR, 3, find))
        yield process


def commit(client: RawClient, group_id: str, offset: int, leader_epoch: int = 0) -> None:
    one = OffsetCommitPartition(
        partition_index=0,
        committed_offset=offset,
        committed_leader_epoch=leader_epoch,
        committed_metadata="",
    )
    request = OffsetCommitRequest(
        group_id=group_id, topics=[OffsetCommitTopic(name=TOPIC, partitions=[one])]
    )
    answer = once_loaded(
        lambda: client.call(OFFSET_COMMIT, 9, request),
        lambda response: int(response.topics[0].partitions[0].error_code),
    )
    assert answer.topics[0].partitions[0].error_code == 0


def committed(client: RawClient, group_ids: list[str]) -> dict[str, int]:
    """What the groups have committed, once their partitions are loaded."""
    groups = [OffsetFetchGroup(group_id=group_id, topics=None) for group_id in group_ids]
    end = time.monotonic() + PATIENCE_S
    while True:
        answer = client.call(OFFSET_FETCH, 9, OffsetFetchRequest(groups=groups))
        loading = [each for each in answer.groups if each.error_code]
        if not loading:
            return {each.group_id: offset_of(each) for each in answer.groups}
        assert {each.error_code for each in loading} == {CoordinatorLoadInProgress.code}
        assert time.monotonic() < end, f"{len(loading)} groups are still being loaded"
        time.sleep(0.02)


def offset_of(group: OffsetFetchGroupResponse) -> int:
    (topic,) = group.topics
    (partition,) = topic.partitions
    assert topic.name == TOPIC
    return partition.committed_offset


def test_gc_4_the_offsets_topic_is_printed_readably(broker: BrokerProcess) -> None:
    """And is read as any other topic is, though it is an internal one."""
    before_ms = time.time_ns() // 1_000_000
    with RawClient(broker.bootstrap_servers) as client:
        commit(client, IN_PARTITION_6, 100)
        commit(client, IN_PARTITION_6, 101, leader_epoch=-1)
        commit(client, "of-another-partition", 5)
    words = [
        "consume", "__consumer_offsets", "--partition", "6", "--format", "offsets",
        "--from-beginning", "--max-messages", "2", "--timeout-ms", "60000",
        "--bootstrap-server", broker.bootstrap_servers,
    ]  # fmt: skip
    command = [COMMAND, *with_settings(words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    begin = f"[{IN_PARTITION_6},{TOPIC},0]::OffsetAndMetadata(offset="
    assert first.startswith(f"{begin}100, leaderEpoch=Optional[0], metadata=, commitTimestamp=")
    assert second.startswith(f"{begin}101, leaderEpoch=Optional.empty, metadata=, ")
    for line in (first, second):
        committed_ms, end = line.rpartition("commitTimestamp=")[2].split(",", 1)
        assert before_ms <= int(committed_ms) <= time.time_ns() // 1_000_000
        assert end == " expireTimestamp=None)"


class Committer:
    """Commits ever larger offsets, to one group after the other, until the broker is gone."""

    def __init__(self, group_ids: list[str]) -> None:
        self.group_ids = group_ids
        self.acknowledged: dict[str, int] = {}
        self.next_offset = 0

    def run(self, bootstrap_servers: str) -> None:
        with suppress(OSError, CorruptData), RawClient(bootstrap_servers) as client:
            while True:
                offset = self.next_offset
                self.next_offset += 1
                group_id = self.group_ids[offset % len(self.group_ids)]
                commit(client, group_id, offset)
                self.acknowledged[group_id] = offset


@pytest.mark.slow
def test_gc_3_what_was_acknowledged_is_there_after_kill_9(broker: BrokerProcess) -> None:
    """Several times in the middle of commits, to groups in all partitions of the topic."""
    committer = Committer([f"group-{n}" for n in range(200)])
    kills = 5
    for _ in range(kills):
        thread = threading.Thread(target=committer.run, args=(broker.bootstrap_servers,))
        begins_at = committer.next_offset
        thread.start()
        time.sleep(0.5)
        wait_until(lambda begins_at=begins_at: committer.next_offset > begins_at + 250)
        broker.kill()
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        broker.start()
        with RawClient(broker.bootstrap_servers) as client:
            found = committed(client, list(committer.acknowledged))
        differing = found.items() - committer.acknowledged.items()
        assert {offset for _, offset in differing} <= {committer.next_offset - 1}, (
            "only the last commit may be there unacknowledged"
        )
        committer.acknowledged.update(found)
    print(f"{committer.next_offset} commits and {kills} kills: all that was acknowledged was there")
    assert committer.next_offset > 1000
