"""LeaderAndIsr from a controller on another broker (ZK-3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas import Broker
from barnabas.broker.inter_broker.control_plane_wire import (
    leader_and_isr_codes,
    leader_and_isr_request,
)
from barnabas.cluster import layout
from barnabas.cluster.controller_requests import LeaderAndIsr
from barnabas.cluster.store import Create
from barnabas.errors import (
    ClusterAuthorizationFailed,
    InvalidTopic,
    NotLeaderOrFollower,
    StaleBrokerEpoch,
    StaleControllerEpoch,
    UnsupportedVersion,
)
from barnabas.protocol.api import LEADER_AND_ISR, PRODUCE, STOP_REPLICA
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from barnabas.types import NO_TOPIC_ID, TopicPartition, uuid_text
from tests.kit.broker.cluster_calls import (
    BROKER_EPOCH,
    CONTROLLER_EPOCH,
    Member,
    cluster_member,
    led,
    stop,
)
from tests.kit.broker.group_calls import allowing, node_of
from tests.kit.broker.produces import produce_request
from tests.kit.raw_client import RawClient, batch


def send(
    peer: Member, value: LeaderAndIsr, broker_epoch: int = BROKER_EPOCH
) -> LeaderAndIsrResponse:
    message, version = leader_and_isr_request(value, broker_epoch, {})
    response = peer.call(LEADER_AND_ISR, message, version)
    assert isinstance(response, LeaderAndIsrResponse)
    return response


def produced(peer: Member, topic: str, number: int = 0) -> int:
    """The error code of a record that is sent there."""
    request = produce_request(topic, {number: batch(b"a")}, acks=1)
    answer = peer.call(PRODUCE, request, 9)
    return int(answer.responses[0].partition_responses[0].error_code)


def test_it_leads_and_follows_as_the_controller_says(peer: Member) -> None:
    value = led("led", [0, 1])
    codes = leader_and_isr_codes(value, send(peer, value))
    assert codes == {TopicPartition("led", 0): 0, TopicPartition("led", 1): 0}
    assert produced(peer, "led") == 0
    elsewhere = led("led", [0], leader=7, leader_epoch=4)
    assert send(peer, elsewhere).error_code == 0
    assert produced(peer, "led") == NotLeaderOrFollower.code
    assert produced(peer, "led", 1) == 0
    assert peer.node.replicas.leader_of(("led", 1)).partition.replicas == (0, 7)


def test_a_topics_own_config_comes_from_the_store(peer: Member) -> None:
    """The request does not carry it."""
    path = layout.topic_config_path("small")
    data = layout.encode_config({"max.message.bytes": "10"})
    peer.run(peer.node.store.commit([Create(path, data)]))
    assert send(peer, led("small", [0])).error_code == 0
    assert peer.node.replicas.leader_of(("small", 0)).log.config.max_message_bytes == 10


def test_many_partitions_in_one_request(peer: Member) -> None:
    value = led("many", list(range(50)))
    codes = leader_and_isr_codes(value, send(peer, value))
    assert codes == {TopicPartition("many", number): 0 for number in range(50)}
    assert all(produced(peer, "many", number) == 0 for number in (0, 16, 49))


def test_what_is_said_next_does_not_overtake_it(peer: Member) -> None:
    leading, version = leader_and_isr_request(led("hasty", list(range(40))), BROKER_EPOCH, {})
    stopping, in_version = stop("hasty", [39], delete=True)
    client = peer.client
    frames = [
        *encode_request(LEADER_AND_ISR, version, 1, "raw", leading),
        *encode_request(STOP_REPLICA, in_version, 2, "raw", stopping),
    ]
    client.send_bytes(b"".join(frames))  # type: ignore[arg-type]
    answers: Any = [
        client.receive(LEADER_AND_ISR, version),
        client.receive(STOP_REPLICA, in_version),
    ]
    assert [(number, answer.error_code) for number, answer in answers] == [(1, 0), (2, 0)]
    names = [replica.topic_partition for replica in peer.node.replicas]
    assert {name.partition for name in names if name.topic == "hasty"} == set(range(39))


def test_zk_3_a_deposed_controller_is_refused(peer: Member) -> None:
    assert send(peer, led("before", [0])).error_code == 0
    late = led("late", [0])._replace(controller_epoch=CONTROLLER_EPOCH - 1)
    assert send(peer, late).error_code == StaleControllerEpoch.code
    assert not any(each.topic_partition.topic == "late" for each in peer.node.replicas)


def test_what_was_meant_for_an_earlier_registration_is_refused(peer: Member) -> None:
    """KIP-380: the broker was away since. A later one than its own it may not have seen itself."""
    codes = [
        send(peer, led(f"epoch{n}", [0]), broker_epoch).error_code
        for n, broker_epoch in enumerate((BROKER_EPOCH - 1, -1, BROKER_EPOCH + 1))
    ]
    assert codes == [StaleBrokerEpoch.code, 0, 0]


def test_mx_1_a_topic_gets_its_id_from_a_later_controller(peer: Member) -> None:
    """MX-1: until then (IBP 2.7) it has none, on disk either; the log is the same afterwards."""
    value = led("old", [0])
    message, version = leader_and_isr_request(value, BROKER_EPOCH, {})
    (row,) = peer.call(LEADER_AND_ISR, message, 4).partition_errors
    assert (row.topic_name, row.partition_index, row.error_code) == ("old", 0, 0)
    assert produced(peer, "old") == 0
    replica = peer.node.replicas.leader_of(("old", 0))
    metadata = replica.log.directory / "partition.metadata"
    assert (replica.partition.topic_id, metadata.exists()) == (NO_TOPIC_ID, False)
    answer = peer.call(LEADER_AND_ISR, message, version)
    assert list(leader_and_isr_codes(value, answer).values()) == [0]
    topic_id = value.partitions[0].topic_id
    assert peer.node.replicas.leader_of(("old", 0)) is replica
    assert (replica.partition.topic_id, replica.log.topic_id) == (topic_id, topic_id)
    assert uuid_text(topic_id) in metadata.read_text()
    assert peer.call(LEADER_AND_ISR, message, 4).partition_errors == [row]
    assert replica.partition.topic_id == topic_id, "it keeps the id"
    assert replica.log.log_end_offset == 1


def test_mx_1_without_ids_in_the_request_that_of_the_topics_node_counts(peer: Member) -> None:
    """MX-1: controllers of IBP 2.7 keep the ids that others have assigned, and send none."""
    topic_id = bytes(range(16))
    node = layout.encode_topic(topic_id, {0: (0, 7)})
    peer.run(peer.node.store.commit([Create(layout.topic_path("kept"), node)]))
    message, _ = leader_and_isr_request(led("kept", [0]), BROKER_EPOCH, {})
    assert peer.call(LEADER_AND_ISR, message, 4).partition_errors[0].error_code == 0
    assert peer.node.replicas.leader_of(("kept", 0)).log.topic_id == topic_id


def test_what_has_no_broker_epoch_is_refused(peer: Member) -> None:
    message = LeaderAndIsrRequest(controller_id=7, controller_epoch=CONTROLLER_EPOCH)
    assert peer.call(LEADER_AND_ISR, message, 1).error_code == UnsupportedVersion.code


def test_without_the_metadata_there_is_no_answer() -> None:
    """The controller sends it again, to a broker that can read topics' configs by then."""
    with cluster_member() as peer:
        peer.run(peer.node.store.close())
        message, version = leader_and_isr_request(led("blind", [0]), BROKER_EPOCH, {})
        peer.client.send(LEADER_AND_ISR, version, message)
        assert peer.client.receive_frame() == b""
        assert not any(each.topic_partition.topic == "blind" for each in peer.node.replicas)


def test_only_brokers_may(peer: Member) -> None:
    with allowing(peer.broker, "led"):
        assert send(peer, led("led", [0])).error_code == ClusterAuthorizationFailed.code


def test_a_broker_without_peers_refuses_the_request(node: Broker, client: RawClient) -> None:
    answer = send(Member(node, client), led("mine", [0]))
    assert (answer.error_code, answer.topics) == (ClusterAuthorizationFailed.code, [])
    assert not any(
        each.topic_partition.topic == "mine" for each in Member(node, client).node.replicas
    )


@pytest.mark.parametrize(
    ("topic", "number"), [("../../../outside", 0), ("/outside", 0), ("in/side", 0), ("minus", -1)]
)
def test_tp_3_no_directory_is_made_elsewhere(tmp_path: Path, topic: str, number: int) -> None:
    """A cluster without an authorizer believes anybody to be its controller."""
    topic = topic.replace("/outside", f"{tmp_path}/outside") if topic[0] == "/" else topic
    data_dir = tmp_path / "here" / "data"
    with cluster_member(data_dir) as member:
        value = led(topic, [number])
        codes = leader_and_isr_codes(value, send(member, value))
        assert codes == {TopicPartition(topic, number): InvalidTopic.code}
        assert produced(member, "led") != 0
        value = led("led", [0])
        assert set(leader_and_isr_codes(value, send(member, value)).values()) == {0}
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["data"]
    assert [path.name for path in data_dir.iterdir() if path.is_dir()] == ["led-0"]


def test_se_1_a_controller_does_not_come_by_the_clients_listener() -> None:
    """Where brokers have a listener of their own, whatever the rules allow."""
    settings = {
        "listeners": "CLIENTS://127.0.0.1:0,BROKERS://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
    }
    value = led("led", [0])
    message, version = leader_and_isr_request(value, BROKER_EPOCH, {})
    codes = {}
    with Broker(config=settings) as broker:
        node = node_of(broker)
        node.view.has_peers = True
        node.view.on_registered(BROKER_EPOCH)
        for endpoint in broker.server.parts.network.endpoints:
            with RawClient(f"127.0.0.1:{endpoint.port}") as client:
                answer = client.call(LEADER_AND_ISR, version, message)
                codes[endpoint.listener] = answer.error_code
    assert codes == {"CLIENTS": ClusterAuthorizationFailed.code, "BROKERS": 0}
