"""StopReplica from a controller on another broker (ZK-3, ZK-4)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas import Broker
from barnabas.broker.inter_broker.control_plane_wire import (
    leader_and_isr_request,
    stop_replica_codes,
    stop_replica_request,
)
from barnabas.cluster.controller_requests import StopReplica
from barnabas.errors import (
    ClusterAuthorizationFailed,
    FencedLeaderEpoch,
    StaleBrokerEpoch,
    StaleControllerEpoch,
)
from barnabas.protocol.api import LEADER_AND_ISR, STOP_REPLICA
from barnabas.protocol.frame import encode_request
from barnabas.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from barnabas.types import TopicPartition
from tests.kit.broker.cluster_calls import (
    BROKER_EPOCH,
    CONTROLLER_EPOCH,
    Member,
    led,
    stop,
)
from tests.kit.raw_client import RawClient


def host(peer: Member, topic: str, numbers: list[int]) -> None:
    message, version = leader_and_isr_request(led(topic, numbers), BROKER_EPOCH, {})
    assert peer.call(LEADER_AND_ISR, message, version).error_code == 0


def hosted(peer: Member, topic: str) -> set[int]:
    names = [replica.topic_partition for replica in peer.node.replicas]
    return {name.partition for name in names if name.topic == topic}


def directories(peer: Member, topic: str) -> set[str]:
    return {path.name for path in peer.broker.data_dir.glob(f"{topic}-?")}


def test_what_is_stopped_stays_on_disk_and_what_is_deleted_does_not(peer: Member) -> None:
    host(peer, "some", [0, 1, 2])
    message, version = stop("some", [0], delete=False)
    response = peer.call(STOP_REPLICA, message, version)
    assert stop_replica_codes(response) == {TopicPartition("some", 0): 0}
    assert hosted(peer, "some") == {1, 2}
    assert directories(peer, "some") == {"some-0", "some-1", "some-2"}
    message, version = stop("some", [1, 5], delete=True)
    response = peer.call(STOP_REPLICA, message, version)
    assert stop_replica_codes(response) == dict.fromkeys(
        [TopicPartition("some", 1), TopicPartition("some", 5)], 0
    )
    assert hosted(peer, "some") == {2}
    assert directories(peer, "some") == {"some-0", "some-2"}


def test_what_is_said_next_does_not_overtake_it(peer: Member) -> None:
    host(peer, "back", list(range(40)))
    stopping, version = stop("back", list(range(40)), delete=False)
    again = led("back", [39], leader_epoch=4)
    leading, in_version = leader_and_isr_request(again, BROKER_EPOCH, {})
    client = peer.client
    frames = [
        *encode_request(STOP_REPLICA, version, 1, "raw", stopping),
        *encode_request(LEADER_AND_ISR, in_version, 2, "raw", leading),
    ]
    client.send_bytes(b"".join(frames))  # type: ignore[arg-type]
    answers: Any = [
        client.receive(STOP_REPLICA, version),
        client.receive(LEADER_AND_ISR, in_version),
    ]
    assert [(number, answer.error_code) for number, answer in answers] == [(1, 0), (2, 0)]
    assert hosted(peer, "back") == {39}


@pytest.mark.parametrize("version", range(STOP_REPLICA.max_version + 1))
def test_every_version(peer: Member, version: int) -> None:
    topic = f"version{version}"
    host(peer, topic, [0, 1])
    message = StopReplicaRequest(controller_id=7, controller_epoch=CONTROLLER_EPOCH)
    if version == 0:
        message.ungrouped_partitions = [StopReplicaPartitionV0(topic_name=topic)]
    elif version < 3:
        message.topics = [StopReplicaTopicV1(name=topic, partition_indexes=[0])]
    else:
        states = [StopReplicaPartitionState(partition_index=0)]
        message.topic_states = [StopReplicaTopicState(topic_name=topic, partition_states=states)]
    assert peer.call(STOP_REPLICA, message, version).error_code == 0
    assert hosted(peer, topic) == {1}


@pytest.mark.parametrize("delete", [False, True])
def test_what_was_said_in_an_older_leader_epoch_is_refused(peer: Member, delete: bool) -> None:
    """KIP-570: it was under way for longer than what came after it.

    What counts is the epoch of the replica here: 3. -1 does not say, -2 is a topic that goes.
    """
    name = f"fenced-{delete}"
    host(peer, name, [0, 1, 2, 3, 4])
    said = dict(enumerate([2, 3, 4, -1, -2]))
    names = [TopicPartition(name, number) for number in said]
    epochs = {names[number]: epoch for number, epoch in said.items()}
    missing = TopicPartition(name, 9)
    value = StopReplica(7, CONTROLLER_EPOCH, (*names, missing), delete, {**epochs, missing: 0})
    stopping, version = stop_replica_request(value, BROKER_EPOCH)
    response = peer.call(STOP_REPLICA, stopping, version)
    assert stop_replica_codes(response) == {
        **dict.fromkeys([*names, missing], 0),
        names[0]: FencedLeaderEpoch.code,
    }
    assert hosted(peer, name) == {0}
    there = {f"{name}-{number}" for number in ([0] if delete else said)}
    assert directories(peer, name) == there


def test_a_late_deletion_does_not_reach_a_replica_that_came_back(peer: Member) -> None:
    """It was sent on a connection that the controller has given up since."""
    host(peer, "again", [0])
    late = StopReplica(
        7, CONTROLLER_EPOCH, (TopicPartition("again", 0),), True, {TopicPartition("again", 0): 3}
    )
    back, version = leader_and_isr_request(led("again", [0], leader_epoch=4), BROKER_EPOCH, {})
    assert peer.call(LEADER_AND_ISR, back, version).error_code == 0
    stopping, version = stop_replica_request(late, BROKER_EPOCH)
    codes = stop_replica_codes(peer.call(STOP_REPLICA, stopping, version))
    assert codes == {TopicPartition("again", 0): FencedLeaderEpoch.code}
    assert hosted(peer, "again") == {0}
    assert directories(peer, "again") == {"again-0"}


def test_zk_3_who_is_refused(peer: Member) -> None:
    host(peer, "kept", [0])
    late, version = stop("kept", [0], delete=True, controller_epoch=CONTROLLER_EPOCH - 1)
    assert peer.call(STOP_REPLICA, late, version).error_code == StaleControllerEpoch.code
    message, version = stop("kept", [0], delete=True)
    message.broker_epoch = BROKER_EPOCH - 1
    assert peer.call(STOP_REPLICA, message, version).error_code == StaleBrokerEpoch.code
    assert hosted(peer, "kept") == {0}


def test_a_broker_without_peers_refuses_the_request(
    node: Broker, client: RawClient, topic: str
) -> None:
    message, version = stop(topic, [0, 1], delete=True)
    answer = Member(node, client).call(STOP_REPLICA, message, version)
    assert answer.error_code == ClusterAuthorizationFailed.code
    assert hosted(Member(node, client), topic) == {0, 1}
