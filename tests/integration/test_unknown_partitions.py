"""Directories that the metadata does not know are logged, but not served or touched (UX-4)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from barnabas import Broker
from barnabas.cli.main import EXIT_FAILURE, EXIT_OK, main
from barnabas.errors import ConfigError, CoordinatorNotAvailable, KafkaStorageError
from barnabas.protocol.api import DELETE_TOPICS, FIND_COORDINATOR, METADATA, PRODUCE
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch

pytestmark = pytest.mark.secured


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


@pytest.fixture
def accepted(orphaned: Path) -> Path:
    """The same, and the operator has accepted that."""
    assert main(["metadata", "repair", "--accept-loss", "--dir", str(orphaned)]) == EXIT_OK
    return orphaned


def test_metadata_that_are_gone_are_not_taken_for_new(orphaned: Path) -> None:
    """The logs' topics would be unknown, and created again by the first client that asks."""
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"its metadata is missing.*--accept-loss"):
            Broker(orphaned).start()
    assert main(["metadata", "repair", "--dir", str(orphaned)]) == EXIT_FAILURE
    assert (orphaned / "old-0" / "00000000000000000000.log").stat().st_size > 0


def test_an_unknown_partition_is_logged_and_left_alone(
    accepted: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = accepted / "old-0" / "00000000000000000000.log"
    before = log.read_bytes()
    with Broker(accepted):
        said = [record.getMessage() for record in caplog.records]
        assert any(str(accepted / "old-0") in line and "ignoring it" in line for line in said), said
    assert log.read_bytes() == before


def test_a_new_topic_does_not_take_over_what_another_left(accepted: Path) -> None:
    """It is set aside, and the new one's deletion does not take it away."""
    before = (accepted / "old-0" / "00000000000000000000.log").read_bytes()
    with Broker(accepted) as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "old")
        assert _produce(client) == 0
        client.call(DELETE_TOPICS, 5, DeleteTopicsRequest(topic_names=["old"], timeout_ms=60_000))
        (stray,) = accepted.glob("old-0.*-stray")
        assert (stray / "00000000000000000000.log").read_bytes() == before


def test_no_topic_is_created_automatically_over_anothers_log(
    accepted: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """TP-6: neither by a client that asks, nor for a coordinator; an administrator may."""
    shutil.copytree(accepted / "old-0", accepted / "old-1")
    (accepted / "old-0").rename(accepted / "__consumer_offsets-7")
    with Broker(accepted) as broker, RawClient(broker.bootstrap_servers) as client:
        for _ in range(2):
            topics = [MetadataRequestTopic(name=name) for name in ("old", "new")]
            request = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
            answer = client.call(METADATA, 9, request)
            assert [each.error_code for each in answer.topics] == [KafkaStorageError.code, 0]
        found = client.call(FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["g"]))
        assert found.coordinators[0].error_code == CoordinatorNotAvailable.code
        assert caplog.text.count("topic old was not created automatically") == 1
        assert "__consumer_offsets cannot be created: topic __consumer_offsets" in caplog.text
        assert not list(accepted.glob("*-stray"))
        create(client, "old", partitions=2)
        assert len(list(accepted.glob("old-1.*-stray"))) == 1
