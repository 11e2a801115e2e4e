"""Metadata: all topics, named ones, by id; creation on the way; the advertised address."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.cluster.controller_requests import UpdateMetadata
from barnabas.cluster.image import BrokerImage, Endpoint, PartitionImage
from barnabas.errors import (
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    LeaderNotAvailable,
    ListenerNotFound,
    PolicyViolation,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.kit.raw_client import RawClient


def ask(
    client: RawClient, names: list[str] | None, version: int = 9, create: bool = False
) -> MetadataResponse:
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    request = MetadataRequest(topics=topics)
    if version >= 4:
        request.allow_auto_topic_creation = create
    return client.call(METADATA, version, request)


@pytest.mark.parametrize("version", range(METADATA.min_version, METADATA.max_version + 1))
def test_a_topic_in_every_version(node, client: RawClient, topic: str, version: int) -> None:
    """PR-9: any broker says who leads what, and how to reach it."""
    answer = ask(client, [topic], version)
    (broker,) = answer.brokers
    assert (broker.node_id, broker.host, broker.port) == (0, "127.0.0.1", node.port)
    (found,) = answer.topics
    assert (found.error_code, found.name) == (0, topic)
    assert [part.partition_index for part in found.partitions] == [0, 1]
    for part in found.partitions:
        assert (part.error_code, part.leader_id) == (0, 0)
        assert (part.replica_nodes, part.isr_nodes) == ([0], [0])
    if version >= 1:
        assert answer.controller_id == 0
    if version >= 2:
        assert len(answer.cluster_id or "") == 22


def test_all_topics(client: RawClient, topic: str) -> None:
    """TP-4: null means all; in version 0 an empty list does."""
    assert topic in [each.name for each in ask(client, None).topics]
    assert topic in [each.name for each in ask(client, [], version=0).topics]
    assert ask(client, [], version=1).topics == []


def test_an_unknown_topic_is_created_when_both_sides_allow_it(client: RawClient) -> None:
    """TP-6: in the answer at once, with `num.partitions` partitions and a leader."""
    answer = ask(client, ["asked-for"], create=False)
    assert answer.topics[0].error_code == UnknownTopicOrPartition.code
    answer = ask(client, ["asked-for"], create=True)
    assert answer.topics[0].error_code == 0
    assert [part.leader_id for part in answer.topics[0].partitions] == [0]


def test_versions_before_4_always_create(client: RawClient) -> None:
    """TP-6: they cannot say that they do not want it."""
    assert ask(client, ["asked-for-by-an-old-client"], version=1).topics[0].error_code == 0


def test_no_creation_when_the_broker_forbids_it() -> None:
    """TP-6: auto.create.topics.enable"""
    config = {"auto.create.topics.enable": "false"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        answer = ask(client, ["never"], create=True)
        assert answer.topics[0].error_code == UnknownTopicOrPartition.code


def test_one_request_does_not_create_any_number_of_topics(client: RawClient) -> None:
    """TP-6: no more than CreateTopics does."""
    answer = ask(client, [f"n{number}" for number in range(10_001)], create=True)
    assert {topic.error_code for topic in answer.topics} == {PolicyViolation.code}
    assert ask(client, ["n1"], create=False).topics[0].error_code == UnknownTopicOrPartition.code


@pytest.mark.parametrize("name", ["a b", "..", "x" * 250, "ü"])
def test_a_bad_name_is_an_invalid_topic(client: RawClient, name: str) -> None:
    assert ask(client, [name], create=True).topics[0].error_code == InvalidTopic.code


def test_internal_topics_are_not_created_by_asking(client: RawClient) -> None:
    """TP-8"""
    answer = ask(client, ["__consumer_offsets"], create=True)
    assert answer.topics[0].error_code == UnknownTopicOrPartition.code


def test_by_topic_id(client: RawClient, topic: str) -> None:
    topic_id = ask(client, [topic], version=12).topics[0].topic_id
    assert topic_id != bytes(16)

    def by_id(wanted: bytes) -> MetadataResponse:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=None, topic_id=wanted)])
        return client.call(METADATA, 12, request)

    assert by_id(topic_id).topics[0].name == topic
    assert by_id(b"\x09" * 16).topics[0].error_code == UnknownTopicId.code


def test_several_unknown_topics_are_created_together(client: RawClient) -> None:
    """TP-6: what cannot be created has its own error."""
    names = ["many-1", "b ad", "many-2", "many.3", "many_3", "many-1"]
    answer = ask(client, names, create=True)
    found = {topic.name: topic.error_code for topic in answer.topics}
    assert found == {
        "many-1": 0,
        "b ad": InvalidTopic.code,
        "many-2": 0,
        "many.3": 0,
        "many_3": InvalidTopic.code,
    }
    assert [topic.name for topic in answer.topics] == names[:5], "each once, in their order"


def test_why_a_topic_was_not_created() -> None:
    config = {"default.replication.factor": "3"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        answer = ask(client, ["wanted"], create=True)
        assert answer.topics[0].error_code == InvalidReplicationFactor.code


@pytest.mark.parametrize("version", [10, 11])
def test_ids_are_refused_by_versions_that_do_not_know_them(
    client: RawClient, topic: str, version: int
) -> None:
    topic_id = ask(client, [topic], version=12).topics[0].topic_id
    for wanted in (
        MetadataRequestTopic(name=None),
        MetadataRequestTopic(name=topic, topic_id=topic_id),
    ):
        request = MetadataRequest(topics=[wanted, MetadataRequestTopic(name=topic)])
        answer = client.call(METADATA, version, request)
        assert [each.error_code for each in answer.topics] == [InvalidRequest.code] * 2
        assert answer.topics[0].name == (wanted.name or "")


def test_an_id_counts_more_than_a_name(client: RawClient, topic: str) -> None:
    topic_id = ask(client, [topic], version=12).topics[0].topic_id
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(name="another", topic_id=topic_id),
            MetadataRequestTopic(name="left-out"),
        ]
    )
    answer = client.call(METADATA, 12, request)
    assert [each.name for each in answer.topics] == [topic]


def test_operations_are_returned_on_request(client: RawClient, topic: str) -> None:
    """KIP-430: as a real broker without an authorizer returns them."""
    nothing = -(1 << 31)
    answer = ask(client, [topic], version=8)
    assert answer.cluster_authorized_operations == nothing
    assert answer.topics[0].topic_authorized_operations == nothing
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)],
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    answer = client.call(METADATA, 8, request)
    assert answer.cluster_authorized_operations == 8096
    assert answer.topics[0].topic_authorized_operations == 0b1101_1111_1000


def test_leaders_that_cannot_be_reached(topic: str) -> None:
    """A dead broker, one without this listener, a directory that is offline."""
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        ask(client, [topic], create=True)
        node = broker.server.node
        image = node.image
        elsewhere = Endpoint("OTHER", "h", 1, "PLAINTEXT")
        states = {
            0: PartitionImage(0, 3, (0,), (0, 7), 1, 1),
            1: PartitionImage(7, 3, (7,), (7,), 1, 1),
            2: PartitionImage(5, 3, (5,), (5,), 1, 1),
            3: PartitionImage(-1, 4, (0,), (0,), 2, 1, offline_replicas=(0,)),
        }
        assert image.cluster_id is not None
        update = UpdateMetadata(
            image.controller_id,
            image.controller_epoch,
            image.cluster_id,
            (*image.brokers.values(), BrokerImage(5, (elsewhere,), None, 1)),
            (image.topics[topic]._replace(partitions=states),),
        )
        node.view.update(image.apply(update))
        for version, unreachable in ((12, ListenerNotFound), (5, LeaderNotAvailable)):
            led, dead, deaf, offline = ask(client, [topic], version).topics[0].partitions
            assert (led.error_code, led.leader_id, led.offline_replicas) == (0, 0, [7])
            assert (dead.error_code, dead.leader_id) == (LeaderNotAvailable.code, -1)
            assert dead.offline_replicas == [7]
            assert (deaf.error_code, deaf.leader_id) == (unreachable.code, -1)
            assert (offline.error_code, offline.leader_id) == (LeaderNotAvailable.code, -1)
            assert (offline.isr_nodes, offline.offline_replicas) == ([0], [0])
