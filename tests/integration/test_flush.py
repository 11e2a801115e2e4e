"""`flush.messages` and `flush.ms`: what an answer means then (ST-10, PR-4)."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.protocol.api import PRODUCE
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.storage.log import Log
from tests.kit.broker.topics import with_configs
from tests.kit.raw_client import RawClient, batch
from tests.kit.waiting import wait_until


@pytest.fixture
def client(tmp_path: Path) -> Iterator[tuple[Broker, RawClient]]:
    """Of a broker whose data is to stay: the disk does not matter for temporary data."""
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as raw:
        yield broker, raw


def produce(client: RawClient, name: str, acks: int, records: bytes) -> int:
    data = PartitionProduceData(index=0, records=records)
    topics = [TopicProduceData(name=name, partition_data=[data])]
    request = ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=topics)
    answer = client.call(PRODUCE, 9, request).responses[0].partition_responses[0]
    assert answer.error_code == 0, answer
    offset: int = answer.base_offset
    return offset


def log_of(broker: Broker, name: str) -> Log:
    return broker.server.node.replicas.leader_of((name, 0)).log


@pytest.mark.parametrize("acks", [1, -1])
def test_st_10_with_flush_messages_1_an_answer_means_on_disk(
    client: tuple[Broker, RawClient], acks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, raw = client
    with_configs(raw, "safe", flush_messages="1")
    synced: list[float] = []
    sync = os.fsync

    def slow(descriptor: int) -> None:
        time.sleep(0.02)  # a disk
        sync(descriptor)
        synced.append(time.monotonic())

    monkeypatch.setattr(os, "fsync", slow)
    for number in range(5):
        began = time.monotonic()
        assert produce(raw, "safe", acks, batch(b"x")) == number
        assert synced
        assert synced[-1] > began, "answered before it was on disk"
        assert log_of(broker, "safe").recovery_point >= number + 1


def test_st_10_without_it_no_producer_waits_for_a_disk(client: tuple[Broker, RawClient]) -> None:
    broker, raw = client
    with_configs(raw, "quick")
    assert produce(raw, "quick", -1, batch(b"x")) == 0
    assert log_of(broker, "quick").recovery_point == 0


def test_st_10_flush_ms_brings_records_to_disk_in_time(client: tuple[Broker, RawClient]) -> None:
    broker, raw = client
    with_configs(raw, "aging", flush_ms="100")
    assert produce(raw, "aging", -1, batch(b"x")) == 0
    log = log_of(broker, "aging")
    wait_until(lambda: log.recovery_point == 1)
