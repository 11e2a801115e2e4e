"""What brokers say to each other, in versions of which no peer here can give an example: the bytes,
written by hand. The versions of 3.9 itself are in the recorded frames.
"""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import CorruptData
from barnabas.protocol.codec import decode, encode
from barnabas.protocol.message import Message
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionResponse,
    TopicData,
    TopicResponse,
)
from barnabas.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from barnabas.protocol.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)
from barnabas.protocol.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaPartitionV0,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
    StopReplicaTopicV1,
)
from barnabas.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)
from tests.kit.effort import examples

ID = bytes(range(16))
NO_TAGS = b"\0"


def i8(number: int) -> bytes:
    return struct.pack(">b", number)


def i16(number: int) -> bytes:
    return struct.pack(">h", number)


def i32(number: int) -> bytes:
    return struct.pack(">i", number)


def i64(number: int) -> bytes:
    return struct.pack(">q", number)


def text(value: str, *, is_compact: bool = False) -> bytes:
    return (bytes([len(value) + 1]) if is_compact else i16(len(value))) + value.encode()


def array(*elements: bytes, is_compact: bool = False) -> bytes:
    return (bytes([len(elements) + 1]) if is_compact else i32(len(elements))) + b"".join(elements)


def uvarint(number: int) -> bytes:
    digits = []
    while number > 0x7F:
        digits.append(0x80 | number & 0x7F)
        number >>= 7
    return bytes((*digits, number))


def check(message: Message, version: int, expected: bytes) -> None:
    assert b"".join(encode(message, version)) == expected  # type: ignore[arg-type]
    assert decode(type(message), expected, version) == message
    with pytest.raises(CorruptData):
        decode(type(message), expected[:-1], version)


# --- LeaderAndIsr --------------------------------------------------------------------------------


def leader_and_isr(version: int) -> LeaderAndIsrRequest:
    state = LeaderAndIsrPartitionState(
        partition_index=1, controller_epoch=2, leader=3, leader_epoch=4, isr=[3, 5],
        partition_epoch=6, replicas=[3, 5, 7],
    )  # fmt: skip
    message = LeaderAndIsrRequest(controller_id=8, controller_epoch=9)
    message.live_leaders = [LeaderAndIsrLiveLeader(broker_id=3, host_name="h", port=10)]
    if version >= 1:
        state.is_new = True
    if version >= 3:
        state.adding_replicas, state.removing_replicas = [7], [5]
    if version >= 6:
        state.leader_recovery_state = 1
    if version < 2:
        state.topic_name = "t"
        message.ungrouped_partition_states = [state]
    else:
        message.broker_epoch = 11
        topic = LeaderAndIsrTopicState(topic_name="t", partition_states=[state])
        message.topic_states = [topic]
        if version >= 5:
            topic.topic_id, message.type = ID, 1
    message.is_kraft_controller = version >= 7
    return message


def leader_and_isr_bytes(version: int, tags_of_state: bytes = NO_TAGS) -> bytes:
    compact = version >= 4
    tags = NO_TAGS if compact else b""
    state = (text("t") if version < 2 else b"") + b"".join(map(i32, (1, 2, 3, 4)))
    state += array(i32(3), i32(5), is_compact=compact) + i32(6)
    state += array(i32(3), i32(5), i32(7), is_compact=compact)
    if version >= 3:
        state += array(i32(7), is_compact=compact) + array(i32(5), is_compact=compact)
    state += (i8(1) if version >= 1 else b"") + (i8(1) if version >= 6 else b"")
    state += tags_of_state if compact else b""
    states = array(state, is_compact=compact)
    if version >= 2:
        topic_id = ID if version >= 5 else b""
        topic = text("t", is_compact=compact) + topic_id + states + tags
        states = array(topic, is_compact=compact)
    leader = i32(3) + text("h", is_compact=compact) + i32(10) + tags
    return b"".join(
        (
            i32(8),
            i8(1) if version >= 7 else b"",
            i32(9),
            i64(11) if version >= 2 else b"",
            i8(1) if version >= 5 else b"",
            states,
            array(leader, is_compact=compact),
            tags,
        )
    )


@pytest.mark.parametrize("version", range(8))
def test_leader_and_isr(version: int) -> None:
    check(leader_and_isr(version), version, leader_and_isr_bytes(version))


@pytest.mark.parametrize("version", range(8))
@settings(max_examples=examples(20, least=5), deadline=None)
@given(cause=st.text(min_size=1, max_size=200))
def test_in_1_a_cause_is_all_that_is_added(version: int, cause: str) -> None:
    """IN-1: Kafka skips the tagged field by its size; versions without tagged fields drop it."""
    message = leader_and_isr(version)
    groups = message.topic_states
    (state,) = groups[0].partition_states if groups else message.ungrouped_partition_states
    state.cause = cause
    said = cause.encode()
    value = uvarint(len(said) + 1) + said
    tags = uvarint(1) + uvarint(10_000) + uvarint(len(value)) + value
    assert b"".join(encode(message, version)) == leader_and_isr_bytes(version, tags)  # type: ignore[arg-type]
    if version >= 4:
        check(message, version, leader_and_isr_bytes(version, tags))


@pytest.mark.parametrize("version", range(8))
def test_the_answer_to_leader_and_isr(version: int) -> None:
    if version >= 5:
        error = LeaderAndIsrPartitionError(partition_index=1, error_code=56)
        topic = LeaderAndIsrTopicError(topic_id=ID, partition_errors=[error])
        errors = array(i32(1) + i16(56) + NO_TAGS, is_compact=True)
        expected = i16(11) + array(ID + errors + NO_TAGS, is_compact=True) + NO_TAGS
        check(LeaderAndIsrResponse(error_code=11, topics=[topic]), version, expected)
        return
    compact, tags = version >= 4, NO_TAGS if version >= 4 else b""
    error = LeaderAndIsrPartitionError(topic_name="t", partition_index=1, error_code=56)
    expected = text("t", is_compact=compact) + i32(1) + i16(56) + tags
    expected = i16(11) + array(expected, is_compact=compact) + tags
    check(LeaderAndIsrResponse(error_code=11, partition_errors=[error]), version, expected)


# --- StopReplica ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
def test_stop_replica(version: int) -> None:
    compact, tags = version >= 2, NO_TAGS if version >= 2 else b""
    message = StopReplicaRequest(
        controller_id=1,
        controller_epoch=2,
        broker_epoch=3 if version >= 1 else -1,
        is_kraft_controller=version >= 4,
    )
    head = i32(1) + (i8(1) if version >= 4 else b"") + i32(2)
    head += i64(3) if version >= 1 else b""
    name = text("t", is_compact=compact)
    if version >= 3:
        state = StopReplicaPartitionState(partition_index=4, leader_epoch=5, delete_partition=True)
        topic = StopReplicaTopicState(topic_name="t", partition_states=[state])
        message.topic_states = [topic]
        states = array(i32(4) + i32(5) + i8(1) + NO_TAGS, is_compact=True)
        expected = head + array(name + states + NO_TAGS, is_compact=True) + NO_TAGS
    else:
        message.delete_partitions = True
        head += i8(1)
        if version == 0:
            message.ungrouped_partitions = [
                StopReplicaPartitionV0(topic_name="t", partition_index=4)
            ]
            expected = head + array(name + i32(4))
        else:
            message.topics = [StopReplicaTopicV1(name="t", partition_indexes=[4, 6])]
            numbers = array(i32(4), i32(6), is_compact=compact)
            expected = head + array(name + numbers + tags, is_compact=compact) + tags
    check(message, version, expected)


@pytest.mark.parametrize("version", range(5))
def test_the_answer_to_stop_replica(version: int) -> None:
    compact, tags = version >= 2, NO_TAGS if version >= 2 else b""
    error = StopReplicaPartitionError(topic_name="t", partition_index=1, error_code=74)
    expected = text("t", is_compact=compact) + i32(1) + i16(74) + tags
    expected = i16(77) + array(expected, is_compact=compact) + tags
    check(StopReplicaResponse(error_code=77, partition_errors=[error]), version, expected)


# --- UpdateMetadata ------------------------------------------------------------------------------


def update_metadata(version: int) -> UpdateMetadataRequest:
    state = UpdateMetadataPartitionState(
        partition_index=1, controller_epoch=2, leader=-2, leader_epoch=4, isr=[3], zk_version=6,
        replicas=[3, 5],
    )  # fmt: skip
    broker = UpdateMetadataBroker(id=3)
    if version == 0:
        broker.v0_host, broker.v0_port = "h", 10
    else:
        endpoint = UpdateMetadataEndpoint(port=10, host="h", security_protocol=1)
        if version >= 3:
            endpoint.listener = "L"
        broker.endpoints = [endpoint]
    message = UpdateMetadataRequest(controller_id=8, controller_epoch=9, live_brokers=[broker])
    if version >= 2:
        message.live_brokers.append(UpdateMetadataBroker(id=4, rack="r"))
    if version >= 4:
        state.offline_replicas = [5]
    if version < 5:
        state.topic_name = "t"
        message.ungrouped_partition_states = [state]
    else:
        message.broker_epoch = 11
        topic = UpdateMetadataTopicState(topic_name="t", partition_states=[state])
        topic.topic_id = ID if version >= 7 else bytes(16)
        message.topic_states = [topic]
    if version >= 8:
        message.is_kraft_controller, message.type = True, 2
    return message


def update_metadata_bytes(version: int) -> bytes:
    compact, tags = version >= 6, NO_TAGS if version >= 6 else b""
    state = (text("t") if version < 5 else b"") + b"".join(map(i32, (1, 2, -2, 4)))
    state += array(i32(3), is_compact=compact) + i32(6)
    state += array(i32(3), i32(5), is_compact=compact)
    state += (array(i32(5), is_compact=compact) if version >= 4 else b"") + tags
    states = array(state, is_compact=compact)
    if version >= 5:
        topic_id = ID if version >= 7 else b""
        topic = text("t", is_compact=compact) + topic_id + states + tags
        states = array(topic, is_compact=compact)
    brokers = []
    if version == 0:
        brokers = [i32(3) + text("h") + i32(10)]
    else:
        listener = text("L", is_compact=compact) if version >= 3 else b""
        endpoint = i32(10) + text("h", is_compact=compact) + listener + i16(1) + tags
        no_rack = (b"\0" if compact else i16(-1)) if version >= 2 else b""
        brokers = [i32(3) + array(endpoint, is_compact=compact) + no_rack + tags]
    if version >= 2:
        rack = text("r", is_compact=compact)
        brokers.append(i32(4) + array(is_compact=compact) + rack + tags)
    return b"".join(
        (
            i32(8),
            i8(1) if version >= 8 else b"",
            i32(9),
            i64(11) if version >= 5 else b"",
            states,
            array(*brokers, is_compact=compact),
            b"\x01\x00\x01\x02" if version >= 8 else tags,  # one field, tag 0, a byte, 2
        )
    )


@pytest.mark.parametrize("version", range(9))
def test_update_metadata(version: int) -> None:
    check(update_metadata(version), version, update_metadata_bytes(version))


@pytest.mark.parametrize("version", range(9))
def test_the_answer_to_update_metadata(version: int) -> None:
    tags = NO_TAGS if version >= 6 else b""
    check(UpdateMetadataResponse(error_code=77), version, i16(77) + tags)


# --- the other way -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
def test_controlled_shutdown(version: int) -> None:
    compact, tags = version >= 3, NO_TAGS if version >= 3 else b""
    message = ControlledShutdownRequest(broker_id=1, broker_epoch=2 if version >= 2 else -1)
    check(message, version, i32(1) + (i64(2) if version >= 2 else b"") + tags)
    left = RemainingPartition(topic_name="t", partition_index=3)
    partition = text("t", is_compact=compact) + i32(3) + tags
    expected = i16(0) + array(partition, is_compact=compact) + tags
    check(ControlledShutdownResponse(remaining_partitions=[left]), version, expected)


@pytest.mark.parametrize("version", range(4))
def test_alter_partition(version: int) -> None:
    state = PartitionData(partition_index=1, leader_epoch=2, partition_epoch=4)
    if version >= 1:
        state.leader_recovery_state = 1
    if version >= 3:
        state.new_isr_with_epochs = [BrokerState(broker_id=5, broker_epoch=6)]
        isr = array(i32(5) + i64(6) + NO_TAGS, is_compact=True)
    else:
        state.new_isr = [5]
        isr = array(i32(5), is_compact=True)
    recovery = i8(1) if version >= 1 else b""
    partition = i32(1) + i32(2) + isr + recovery + i32(4) + NO_TAGS
    topic = TopicData(partitions=[state])
    name = text("t", is_compact=True)
    if version >= 2:
        topic.topic_id, name = ID, ID
    else:
        topic.topic_name = "t"
    topics = array(name + array(partition, is_compact=True) + NO_TAGS, is_compact=True)
    expected = i32(7) + i64(8) + topics + NO_TAGS
    check(AlterPartitionRequest(broker_id=7, broker_epoch=8, topics=[topic]), version, expected)


@pytest.mark.parametrize("version", range(4))
def test_the_answer_to_alter_partition(version: int) -> None:
    state = PartitionResponse(
        partition_index=1, error_code=2, leader_id=3, leader_epoch=4, isr=[5], partition_epoch=6
    )
    if version >= 1:
        state.leader_recovery_state = 1
    recovery = i8(1) if version >= 1 else b""
    partition = i32(1) + i16(2) + i32(3) + i32(4) + array(i32(5), is_compact=True)
    partition += recovery + i32(6) + NO_TAGS
    topic = TopicResponse(partitions=[state])
    name = text("t", is_compact=True)
    if version >= 2:
        topic.topic_id, name = ID, ID
    else:
        topic.topic_name = "t"
    topics = array(name + array(partition, is_compact=True) + NO_TAGS, is_compact=True)
    expected = i32(0) + i16(41) + topics + NO_TAGS
    check(AlterPartitionResponse(error_code=41, topics=[topic]), version, expected)
