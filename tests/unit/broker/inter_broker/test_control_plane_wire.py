"""The controller's word as it travels: what is sent is what was meant, and Kafka says it alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.inter_broker.control_plane_wire import (
    HAS_TOPIC_IDS,
    PARTITIONS_AT_ONCE,
    check,
    in_pieces,
    leader_and_isr_codes,
    leader_and_isr_request,
    leader_and_isr_response,
    leader_and_isr_topics,
    leader_and_isr_value,
    stop_replica_codes,
    stop_replica_request,
    stop_replica_response,
    stop_replica_values,
)
from barnabas.cluster.controller_requests import (
    LONGEST_CAUSE,
    ControlRequest,
    LeaderAndIsr,
    PartitionState,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.image import BrokerImage, Endpoint, PartitionImage, TopicImage
from barnabas.errors import (
    KafkaStorageError,
    StaleBrokerEpoch,
    StaleControllerEpoch,
    UnsupportedVersion,
)
from barnabas.protocol.api import LEADER_AND_ISR, STOP_REPLICA
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from barnabas.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from barnabas.types import NO_TOPIC_ID, TopicPartition
from tests.kit.broker.recordings import recorded, recorded_bodies, travelled

ID = bytes(range(16))
OTHER_ID = bytes(range(16, 32))
LED = PartitionImage(1, 5, (1, 2), (1, 2, 3), 9, 4, adding=(3,), removing=(2,))


def broker(broker_id: int, port: int) -> BrokerImage:
    return BrokerImage(broker_id, (Endpoint("L", "127.0.0.1", port, "PLAINTEXT"),), None, 7)


def state(
    topic: str, number: int, topic_id: bytes, partition: PartitionImage = LED
) -> PartitionState:
    name = TopicPartition(topic, number)
    return PartitionState(name, topic_id, partition, {"a": topic}, number == 0)


# --- LeaderAndIsr --------------------------------------------------------------------------------


def test_leader_and_isr_arrives_as_it_was_meant() -> None:
    value = LeaderAndIsr(
        8,
        9,
        (
            state("t", 0, ID),
            state("u", 0, OTHER_ID, LED._replace(leader=-1)),
            state("t", 1, ID, LED._replace(leader=2)),
        ),
    )
    live = {1: broker(1, 9001), 3: broker(3, 9003)}
    message, version = leader_and_isr_request(value, 77, live)
    assert version == LEADER_AND_ISR.max_version
    received = travelled(message, version)
    assert received.broker_epoch == 77
    assert [(each.broker_id, each.port) for each in received.live_leaders] == [(1, 9001)]
    assert leader_and_isr_topics(received) == {"t": ID, "u": OTHER_ID}
    got = leader_and_isr_value(received, version, {"t": {"a": "t"}, "u": {"a": "u"}})
    assert got[:2] == value[:2]
    assert sorted(got.partitions) == sorted(value.partitions)


@pytest.mark.foreign
def test_kafkas_leader_and_isr_is_understood_and_said_alike(shared: Path) -> None:
    for version, request, response in recorded(shared, LEADER_AND_ISR):
        configs: dict[str, dict[str, str]] = {name: {} for name in leader_and_isr_topics(request)}
        value = leader_and_isr_value(request, version, configs)
        live = {each.broker_id: broker(each.broker_id, each.port) for each in request.live_leaders}
        said, in_version = leader_and_isr_request(value, request.broker_epoch, live)
        assert in_version == version
        said.live_leaders.sort(key=lambda each: each.broker_id)
        request.live_leaders.sort(key=lambda each: each.broker_id)
        assert said == request
        codes = leader_and_isr_codes(value, response)
        assert codes.keys() == {each.topic_partition for each in value.partitions}
        answered = leader_and_isr_response(value, codes)
        assert leader_and_isr_codes(value, answered) == codes
        answered.topics.sort(key=lambda each: each.topic_id)
        response.topics.sort(key=lambda each: each.topic_id)
        assert answered == response


def test_in_1_a_cause_travels_and_is_cut() -> None:
    """IN-1: each partition has its own; a long one must not make the request large."""
    long = "ä" * (LONGEST_CAUSE + 1)
    states = [
        state("t", number, ID)._replace(cause=cause)
        for number, cause in enumerate(("", "broker 1 failed", long))
    ]
    message, version = leader_and_isr_request(LeaderAndIsr(8, 9, tuple(states)), 77, {})
    received = leader_and_isr_value(travelled(message, version), version, {"t": {"a": "t"}})
    assert [each.cause for each in received.partitions] == ["", "broker 1 failed", long[:-1]]


@pytest.mark.foreign
def test_in_1_without_causes_the_bytes_are_kafkas(shared: Path) -> None:
    """IN-1: what Kafka sent is decoded without causes, and encoded again byte by byte."""
    for version, body in recorded_bodies(shared, LEADER_AND_ISR):
        request = decode(LeaderAndIsrRequest, body, version)
        causes = [each.cause for topic in request.topic_states for each in topic.partition_states]
        assert causes == [""] * len(causes) != []
        assert b"".join(map(bytes, encode(request, version))) == body


@pytest.mark.parametrize("version", range(2, LEADER_AND_ISR.max_version + 1))
def test_mx_1_leader_and_isr_travels_in_older_versions(version: int) -> None:
    """MX-1: 4 is that of IBP 2.7, 5 that of Kafka 2.8; the answers fit to them."""
    topic_id = ID if version >= HAS_TOPIC_IDS else NO_TOPIC_ID
    plain = LED if version > 2 else LED._replace(adding=(), removing=())
    value = LeaderAndIsr(8, 9, (state("t", 0, topic_id, plain), state("t", 1, topic_id, plain)))
    received = travelled(leader_and_isr_request(value, 77, {})[0], version)
    assert leader_and_isr_value(received, version, {"t": {"a": "t"}}) == value
    codes = {TopicPartition("t", 0): KafkaStorageError.code, TopicPartition("t", 1): 0}
    response = travelled(leader_and_isr_response(value, codes, version), version)
    if version >= HAS_TOPIC_IDS:
        assert leader_and_isr_codes(value, response) == codes
    else:
        rows = response.partition_errors
        assert {(row.topic_name, row.partition_index): row.error_code for row in rows} == codes


def test_what_has_no_broker_epoch_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        leader_and_isr_value(LeaderAndIsrRequest(), 1, {})


def test_the_answer_to_leader_and_isr_has_each_partition() -> None:
    value = LeaderAndIsr(8, 9, (state("t", 0, ID), state("u", 0, OTHER_ID), state("t", 1, ID)))
    codes = {
        TopicPartition("t", 0): 0,
        TopicPartition("t", 1): KafkaStorageError.code,
        TopicPartition("u", 0): 0,
    }
    response = travelled(leader_and_isr_response(value, codes), 7)
    assert leader_and_isr_codes(value, response) == codes
    strange = value._replace(partitions=value.partitions[:1])
    assert TopicPartition("u", 0) not in leader_and_isr_codes(strange, response)


def test_what_is_refused_as_a_whole_is_raised() -> None:
    with pytest.raises(StaleControllerEpoch):
        leader_and_isr_codes(
            LeaderAndIsr(1, 1, ()), LeaderAndIsrResponse(error_code=StaleControllerEpoch.code)
        )
    with pytest.raises(StaleBrokerEpoch):
        stop_replica_codes(StopReplicaResponse(error_code=StaleBrokerEpoch.code))
    check(0)


# --- StopReplica ---------------------------------------------------------------------------------


def test_stop_replica_arrives_as_it_was_meant() -> None:
    """And with it the leader epoch in which each was said (KIP-570)."""
    names = (TopicPartition("t", 0), TopicPartition("u", 3), TopicPartition("t", 2))
    said = {names[0]: 5, names[1]: -2}
    for delete in (True, False):
        value = StopReplica(8, 9, names, delete, said)
        message, version = stop_replica_request(value, 77)
        assert version == STOP_REPLICA.max_version
        received = travelled(message, version)
        assert received.broker_epoch == 77
        assert {
            topic.topic_name: [each.leader_epoch for each in topic.partition_states]
            for topic in received.topic_states
        } == {"t": [5, -1], "u": [-2]}
        (got,) = stop_replica_values(received, version)
        assert got._replace(partitions=tuple(sorted(names))) == value._replace(
            partitions=tuple(sorted(names))
        )


def test_stopped_and_deleted_partitions_are_distinguished() -> None:
    states = [
        StopReplicaPartitionState(partition_index=0, leader_epoch=4),
        StopReplicaPartitionState(partition_index=1, leader_epoch=5),
        StopReplicaPartitionState(partition_index=2, leader_epoch=-2, delete_partition=True),
        StopReplicaPartitionState(partition_index=3, leader_epoch=-1),
    ]
    topic = StopReplicaTopicState(topic_name="t", partition_states=states)
    message = StopReplicaRequest(controller_id=8, controller_epoch=9, topic_states=[topic])
    names = [TopicPartition("t", number) for number in range(4)]
    said = {names[0]: 4, names[1]: 5}
    for version in (3, 4):
        assert stop_replica_values(message, version) == [
            StopReplica(8, 9, (names[0], names[1], names[3]), False, said),
            StopReplica(8, 9, (names[2],), True, {names[2]: -2}),
        ]


def test_older_versions_of_stop_replica() -> None:
    names = (TopicPartition("t", 0), TopicPartition("t", 1))
    ungrouped = [StopReplicaPartitionV0(topic_name="t", partition_index=n) for n in (0, 1)]
    oldest = StopReplicaRequest(ungrouped_partitions=ungrouped, delete_partitions=True)
    grouped = [StopReplicaTopicV1(name="t", partition_indexes=[0, 1])]
    for message, version, delete in (
        (oldest, 0, True),
        (StopReplicaRequest(topics=grouped), 1, False),
        (StopReplicaRequest(topics=grouped, delete_partitions=True), 2, True),
    ):
        received = travelled(message, version)
        assert stop_replica_values(received, version) == [StopReplica(0, 0, names, delete)]


@pytest.mark.foreign
def test_kafkas_stop_replica_is_understood_and_said_alike(shared: Path) -> None:
    for version, request, response in recorded(shared, STOP_REPLICA):
        values = stop_replica_values(request, version)
        said = [stop_replica_request(value, request.broker_epoch) for value in values]
        assert [in_version for _, in_version in said] == [version] * len(said)
        assert sorted(_stops(request)) == sorted(
            stop for message, _ in said for stop in _stops(message)
        )
        codes = stop_replica_codes(response)
        assert codes.keys() == {name for value in values for name in value.partitions}
        assert stop_replica_response(codes) == response


@pytest.mark.foreign
def test_kafkas_stop_replica_below_3_4_says_leader_epochs_too(shared: Path) -> None:
    """KIP-570: recorded with inter.broker.protocol.version 2.6."""
    said = {}
    for version, request, _ in recorded(shared, STOP_REPLICA, "interbroker-ibp2.6"):
        assert version == 3
        for value in stop_replica_values(request, version):
            assert not value.delete
            said.update({name: value.leader_epoch(name) for name in value.partitions})
    assert said == {
        TopicPartition("r2", number): epoch for number, epoch in enumerate([2, 1, 2, 1])
    }


def _stops(message: StopReplicaRequest) -> list[tuple[object, ...]]:
    head = (message.controller_id, message.controller_epoch, message.broker_epoch)
    return [
        (*head, topic.topic_name, each.partition_index, each.leader_epoch, each.delete_partition)
        for topic in message.topic_states
        for each in topic.partition_states
    ]


# --- in pieces -----------------------------------------------------------------------------------


def test_large_requests_go_in_pieces() -> None:
    count = 2 * PARTITIONS_AT_ONCE + 1
    states = tuple(state("t", number, ID) for number in range(count))
    names = tuple(each.topic_partition for each in states)
    for value in (LeaderAndIsr(8, 9, states), StopReplica(8, 9, names, delete=True)):
        whole: ControlRequest = value
        pieces = list(in_pieces(whole))
        assert [len(each.partitions) for each in pieces] == [  # type: ignore[union-attr]
            PARTITIONS_AT_ONCE,
            PARTITIONS_AT_ONCE,
            1,
        ]
        assert all(each._replace(partitions=()) == value._replace(partitions=()) for each in pieces)
        joined = [one for each in pieces for one in each.partitions]  # type: ignore[union-attr]
        assert tuple(joined) == value.partitions
    assert [len(each.partitions) for each in in_pieces(LeaderAndIsr(8, 9, states[:5]), 2)] == [  # type: ignore[union-attr]
        2,
        2,
        1,
    ]


def test_topics_stay_whole_and_each_piece_has_the_brokers() -> None:
    sizes = {"large": 4001, "a": 3000, "b": 1000, "c": 1, "d": 9000, "e": 1}
    topics = tuple(
        TopicImage(name, ID, dict.fromkeys(range(size), LED), {}) for name, size in sizes.items()
    )
    value = UpdateMetadata(8, 9, "cluster", (broker(1, 9001),), topics, ("gone",))
    pieces = list(in_pieces(value))
    assert all(isinstance(each, UpdateMetadata) for each in pieces)
    updates = [each for each in pieces if isinstance(each, UpdateMetadata)]
    assert [[topic.name for topic in each.topics] for each in updates] == [
        ["large"],
        ["a", "b"],
        ["c"],
        ["d"],
        ["e"],
    ]
    assert [each.removed_topics for each in updates] == [("gone",), (), (), (), ()]
    assert all(each.brokers == value.brokers for each in updates)
    brokers_alone = value._replace(topics=(), removed_topics=())
    assert list(in_pieces(brokers_alone)) == [brokers_alone]
