"""Directories that the metadata does not know are logged, but not served or touched (UX-4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.protocol.api import DELETE_TOPICS, PRODUCE
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch


def _produce(client: RawClient) -> int:
    data = PartitionProduceData(index=0, records=batch(b"value"))
    topics = [TopicProduceData(name="old", partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics)
    answer = client.call(PRODUCE, 9, request)
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


@pytest.fixture
def orphaned(tmp_path: Path) -> Path:
    """A data directory with a topic's records, and without the metadata of that topic."""
    with Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "old")
        assert _produce(client) == 0
    for each in tmp_path.glob("barnabas-metadata.*"):
        each.unlink()
    return tmp_path


def test_an_unknown_partition_is_logged_and_left_alone(
    orphaned: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = orphaned / "old-0" / "00000000000000000000.log"
    before = log.read_bytes()
    with Broker(orphaned):
        said = [record.getMessage() for record in caplog.records]
        assert any(str(orphaned / "old-0") in line and "left alone" in line for line in said), said
    assert log.read_bytes() == before


def test_a_new_topic_does_not_take_over_what_another_left(orphaned: Path) -> None:
    """It is set aside, and the new one's deletion does not take it away."""
    before = (orphaned / "old-0" / "00000000000000000000.log").read_bytes()
    with Broker(orphaned) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "old")
        assert _produce(client) == 0
        client.call(DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["old"], timeout_ms=60_000))
        (stray,) = orphaned.glob("old-0.*-stray")
        assert (stray / "00000000000000000000.log").read_bytes() == before
