"""Metadata: all topics, named ones, by id; creation on the way; the address that is told."""

from __future__ import annotations

import pytest

from barnabas.errors import InvalidTopic, UnknownTopicId, UnknownTopicOrPartition
from barnabas.protocol.api import METADATA
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.raw_client import RawClient


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
    """PR-9: any broker tells who leads what, and how to reach it."""
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
    from barnabas import Broker

    config = {"auto.create.topics.enable": "false"}
    with Broker(config=config) as broker, RawClient(broker.bootstrap_servers) as client:
        answer = ask(client, ["never"], create=True)
        assert answer.topics[0].error_code == UnknownTopicOrPartition.code


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
