"""Produce requests that repeat an earlier one: which do, and what becomes of their answers."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.broker.network.router import Router
from barnabas.cluster.image import PartitionImage
from barnabas.errors import KafkaStorageError, NotLeaderOrFollower, RequestTimedOut
from barnabas.protocol.api import METADATA, PRODUCE
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.storage.files import Bytes, OsFile
from barnabas.types import FileSlice
from tests.kit.broker.topics import create
from tests.kit.raw_client import PATIENCE_S, RawClient, batch


def request(topic: str, index: int = 0, acks: int = -1, timeout_ms: int = 5000) -> ProduceRequest:
    row = PartitionProduceData(index=index, records=batch(b"value"))
    topics = [TopicProduceData(name=topic, partition_data=[row])]
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=topics)


def receive(client: RawClient, version: int = 9) -> PartitionProduceResponse:
    return client.receive(PRODUCE, version)[1].responses[0].partition_responses[0]


def on_loop(node: Broker, action: Callable[[], Any]) -> Any:
    """On the broker's own loop, between two requests."""

    async def run() -> Any:
        return action()

    coroutine: Coroutine[Any, Any, Any] = run()
    return node.thread.run(coroutine, PATIENCE_S)


def replica_of(node: Broker, topic: str) -> Any:
    return node.server.node.replicas.leader_of((topic, 0))


def led_by(leader: int, leader_epoch: int) -> PartitionImage:
    """With a follower that never fetches."""
    return PartitionImage(leader, leader_epoch, (0, 7), (0, 7), leader_epoch, 1)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions of the requests that were decoded."""
    versions: list[int] = []
    dispatch = Router._dispatch

    def counting(self: Router, channel: Any, frame: memoryview) -> None:
        versions.append(int.from_bytes(frame[2:4], "big"))
        dispatch(self, channel, frame)

    monkeypatch.setattr(Router, "_dispatch", counting)
    return versions


@pytest.mark.parametrize("version", range(7, PRODUCE.max_version + 1))
def test_only_the_first_of_many_is_decoded(
    client: RawClient, topic: str, decoded: list[int], version: int
) -> None:
    for number in range(40):
        sent = client.send(PRODUCE, version, request(topic, index=number % 2))
        got, response = client.receive(PRODUCE, version)
        row = response.responses[0].partition_responses[0]
        assert (got, row.index, row.base_offset) == (sent, number % 2, number // 2)
    assert decoded == [version]


@pytest.mark.parametrize("version", range(3, 7))
def test_old_versions_are_decoded_each_time(
    client: RawClient, topic: str, decoded: list[int], version: int
) -> None:
    for _ in range(2):
        client.call(PRODUCE, version, request(topic))
    assert decoded == [version, version]


def test_what_is_kept_of_a_connection_is_bounded(
    client: RawClient, topic: str, decoded: list[int]
) -> None:
    """UX-4: of timeouts without end the first ones are known, and the others are decoded."""
    for timeout_ms in [*range(1000, 1100), *range(1000, 1100)]:
        client.call(PRODUCE, 9, request(topic, timeout_ms=timeout_ms))
    assert len(decoded) == 100 + 36


def test_acks_0_is_not_answered_however_often(client: RawClient, topic: str) -> None:
    """PR-4"""
    for _ in range(3):
        client.send(PRODUCE, 9, request(topic, acks=0))
    sent = client.send(PRODUCE, 9, request(topic))
    got, response = client.receive(PRODUCE, 9)
    assert got == sent
    assert response.responses[0].partition_responses[0].base_offset == 3


def test_answers_keep_the_order_of_mixed_requests(client: RawClient, topic: str) -> None:
    sent = []
    for number in range(60):
        if number % 7 == 3:
            sent.append(client.send(METADATA, 9, MetadataRequest(topics=[])))
        elif number % 7 == 5:
            sent.append(client.send(PRODUCE, 8, request(topic, index=99)))
        else:
            sent.append(client.send(PRODUCE, 9, request(topic, index=number % 2)))
    got = [int.from_bytes(client.receive_frame()[:4], "big") for _ in sent]
    assert got == sent


def test_acks_all_waits_for_the_other_replicas(node: Broker, client: RawClient, topic: str) -> None:
    """PR-4: a follower that does not fetch lets the wait run out; the records stay."""
    client.call(PRODUCE, 9, request(topic, timeout_ms=50))
    client.call(PRODUCE, 9, request(topic, acks=1, timeout_ms=50))
    partition = replica_of(node, topic).partition
    both = led_by(0, partition.leader_epoch + 1)
    on_loop(node, lambda: partition.become_leader(both, partition.log_end_offset))
    for _ in range(3):
        client.send(PRODUCE, 9, request(topic, timeout_ms=50))
    client.send(PRODUCE, 9, request(topic, acks=1, timeout_ms=50))
    rows = [receive(client) for _ in range(4)]
    assert [row.error_code for row in rows] == [RequestTimedOut.code] * 3 + [0]
    assert [row.base_offset for row in rows] == [2, 3, 4, 5]


def test_a_follower_is_no_leader(node: Broker, client: RawClient, topic: str) -> None:
    client.call(PRODUCE, 9, request(topic))
    partition = replica_of(node, topic).partition
    other = led_by(7, partition.leader_epoch + 1)
    on_loop(node, lambda: partition.become_follower(other))
    client.send(PRODUCE, 9, request(topic))
    row = receive(client)
    assert (row.error_code, row.base_offset) == (NotLeaderOrFollower.code, -1)


@pytest.mark.parametrize("acks", [1, -1])
def test_a_failed_write_is_an_error_in_the_answer(tmp_path: Path, acks: int) -> None:
    """ST-10: the answers that were packed already are not sent."""
    log_dirs = f"{tmp_path / 'a'},{tmp_path / 'b'}"
    with Broker(config={"log.dirs": log_dirs}) as node, RawClient(node.bootstrap_servers) as client:
        create(client, "t")
        client.call(PRODUCE, 9, request("t", acks=acks))
        log = replica_of(node, "t").log

        class Full(OsFile):
            def writev(self, position: int, buffers: Sequence[Bytes]) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

        def fill() -> None:
            segment = log.segments[-1]
            segment._file = Full(os.dup(segment.open_file().fileno()))

        on_loop(node, fill)
        client.send_bytes(2 * framed(request("t", acks=acks)))
        rows = [receive(client) for _ in range(2)]
        assert [row.error_code for row in rows] == [KafkaStorageError.code] * 2
        assert [row.base_offset for row in rows] == [-1, -1]


def framed(wanted: ProduceRequest) -> bytes:
    parts = encode_request(PRODUCE, 9, 1, "raw", wanted)
    return b"".join(part for part in parts if not isinstance(part, FileSlice))
