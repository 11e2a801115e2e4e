"""UpdateMetadata from a controller on another broker: what clients see then (ZK-4)."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas import Broker
from barnabas.broker.inter_broker.update_metadata_wire import update_metadata_request
from barnabas.cluster import config_changes, layout
from barnabas.cluster.controller_requests import UpdateMetadata
from barnabas.cluster.image import BrokerImage, Endpoint, PartitionImage, TopicImage
from barnabas.cluster.store import Create, Delete, Set
from barnabas.errors import (
    ClusterAuthorizationFailed,
    StaleBrokerEpoch,
    StaleControllerEpoch,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import METADATA, UPDATE_METADATA
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.types import NO_TOPIC_ID, FileSlice
from tests.kit.broker.cluster_calls import (
    BROKER_EPOCH,
    CONTROLLER_EPOCH,
    Member,
    topic_id,
)
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until

LED = PartitionImage(7, 3, (7,), (7, 0), 2, CONTROLLER_EPOCH)
BROKERS = tuple(
    BrokerImage(broker_id, (Endpoint("PLAINTEXT", "h", 9000 + broker_id, "PLAINTEXT"),), None, -1)
    for broker_id in (0, 7)
)


def update(*names: str, removed: tuple[str, ...] = ()) -> UpdateMetadata:
    topics = tuple(TopicImage(name, topic_id(name), {0: LED, 1: LED}, {}) for name in names)
    return UpdateMetadata(7, CONTROLLER_EPOCH, "", BROKERS, topics, removed)


def send(peer: Member, value: UpdateMetadata, broker_epoch: int = BROKER_EPOCH) -> int:
    known: Mapping[str, TopicImage] = peer.node.image.topics
    message, version = update_metadata_request(value, broker_epoch, known)
    return int(peer.call(UPDATE_METADATA, message, version).error_code)


def partitions(peer: Member, topic: str) -> list[tuple[int, int, int, list[int]]]:
    names = [MetadataRequestTopic(name=topic)]
    wanted = MetadataRequest(topics=names, allow_auto_topic_creation=False)
    (found,) = peer.call(METADATA, wanted, 9).topics
    if found.error_code:
        assert found.error_code == UnknownTopicOrPartition.code
        return []
    return [
        (each.partition_index, each.leader_id, each.leader_epoch, each.replica_nodes)
        for each in found.partitions
    ]


def test_zk_4_clients_see_what_the_controller_says(peer: Member) -> None:
    cluster_id = peer.node.image.cluster_id
    assert send(peer, update("told")) == 0
    assert partitions(peer, "told") == [(0, 7, 3, [7, 0]), (1, 7, 3, [7, 0])]
    answer = peer.call(METADATA, MetadataRequest(topics=[]), 9)
    assert answer.controller_id == 7
    assert answer.cluster_id == cluster_id
    assert sorted((each.node_id, each.port) for each in answer.brokers) == [(0, 9000), (7, 9007)]
    assert send(peer, update(removed=("told",))) == 0
    assert partitions(peer, "told") == []


def test_zk_4_a_deletion_missed_before_a_registration_that_only_the_controller_knows(
    peer: Member,
) -> None:
    """Its own commit may be answered later than the controller sees the node, and acts."""
    path = layout.topic_path("goes")
    peer.run(peer.node.store.commit([Create(path, b"")]))
    assert send(peer, update("goes")) == 0
    assert send(peer, update()) == 0
    peer.run(peer.node.store.commit([Delete(path)]))
    assert send(peer, update()) == 0
    assert partitions(peer, "goes"), "a controller that knows of no new registration tells all"
    assert send(peer, update(), BROKER_EPOCH + 1) == 0
    assert partitions(peer, "goes") == []


def test_a_topics_own_config_comes_from_the_store(peer: Member) -> None:
    path = layout.topic_config_path("configured")
    data = layout.encode_config({"retention.ms": "10"})
    peer.run(peer.node.store.commit([Create(path, data)]))
    assert send(peer, update("configured")) == 0
    assert peer.node.image.topics["configured"].config == {"retention.ms": "10"}


def test_a_change_announced_before_the_topic_was_known_is_not_lost(peer: Member) -> None:
    """TP-5: this broker had read the topic's settings, and not yet carried the request out."""
    path = layout.topic_config_path("early")
    node, new = peer.node, {"retention.ms": "20"}
    change = config_changes.encode_change("topics/early")

    async def announce() -> None:
        await node.store.commit(
            [
                Create(path, layout.encode_config(new)),
                Create(config_changes.CHANGE_PREFIX, change, sequential=True),
            ]
        )
        # Returns after a round, in which the other change was skipped.
        await node.dynamic_config.alter_broker(0, lambda _: {"log.retention.ms": "604800000"})

    async def carry_out() -> None:
        update_of = update("early")
        (topic,) = update_of.topics
        old = topic._replace(config={"retention.ms": "10"})
        cluster_id = node.image.cluster_id
        assert cluster_id is not None
        node.control.carry_out(update_of._replace(cluster_id=cluster_id, topics=(old,)))

    peer.run(announce())
    peer.run(carry_out())
    assert node.image.topics["early"].config == {"retention.ms": "10"}
    assert send(peer, update("early")) == 0
    wait_until(lambda: node.image.topics["early"].config == new)


def test_a_namesake_does_not_inherit_the_config_of_a_deleted_topic(peer: Member) -> None:
    """ZK-4: whose deletion this broker has missed."""
    path = layout.topic_config_path("again")
    peer.run(peer.node.store.commit([Create(path, layout.encode_config({"retention.ms": "10"}))]))
    assert send(peer, update("again")) == 0
    peer.run(peer.node.store.commit([Set(path, layout.encode_config({"retention.ms": "20"}))]))
    assert send(peer, update("again")) == 0
    assert peer.node.image.topics["again"].config == {"retention.ms": "10"}, "no change announced"
    (namesake,) = (each._replace(topic_id=topic_id("2")) for each in update("again").topics)
    assert send(peer, update()._replace(topics=(namesake,))) == 0
    assert peer.node.image.topics["again"].config == {"retention.ms": "20"}


def test_zk_3_who_is_refused(peer: Member) -> None:
    assert send(peer, update("before")) == 0
    late = update("late")._replace(controller_epoch=CONTROLLER_EPOCH - 1)
    assert send(peer, late) == StaleControllerEpoch.code
    assert send(peer, update("late"), BROKER_EPOCH - 1) == StaleBrokerEpoch.code
    assert send(peer, update("before"), -1) == 0
    assert partitions(peer, "late") == []


def test_what_a_controller_says_may_be_long(peer: Member) -> None:
    """ZK-4: it names all partitions at once; here a field of a newer version makes it long."""
    message, version = update_metadata_request(update("long"), BROKER_EPOCH, {})
    parts = encode_request(UPDATE_METADATA, version, 77, "", message)
    encoded = b"".join(bytes(each) for each in parts if not isinstance(each, FileSlice))
    assert encoded[-1] == 0, "no tagged fields"
    frame = encoded[4:-1] + b"\x01\x64\x80\x80\xc0\x02" + bytes(5 << 20)
    peer.client.send_bytes(len(frame).to_bytes(4, "big") + frame)
    correlation_id, answer = peer.client.receive(UPDATE_METADATA, version)
    assert (correlation_id, answer.error_code) == (77, 0)
    assert partitions(peer, "long")


def test_mx_1_topics_without_ids_are_known_by_name(peer: Member) -> None:
    """MX-1: a controller of IBP 2.7 sends none; the one that assigns them sends the topic again."""
    message, version = update_metadata_request(update("old"), BROKER_EPOCH, {})
    assert peer.call(UPDATE_METADATA, message, 6).error_code == 0
    assert peer.node.image.topics["old"].topic_id == NO_TOPIC_ID
    assert NO_TOPIC_ID not in peer.node.image.topic_names
    assert peer.call(UPDATE_METADATA, message, version).error_code == 0
    topic_id = peer.node.image.topics["old"].topic_id
    assert peer.node.image.topic_names[topic_id] == "old"


def test_a_broker_without_peers_refuses_the_request(
    node: Broker, client: RawClient, topic: str
) -> None:
    lone = Member(node, client)
    assert send(lone, update("mine", removed=(topic,))) == ClusterAuthorizationFailed.code
    assert [number for number, *_ in partitions(lone, topic)] == [0, 1]
    assert partitions(lone, "mine") == []
