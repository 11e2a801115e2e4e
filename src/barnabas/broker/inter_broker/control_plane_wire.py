"""Converts the controller's requests to messages, and vice versa.

This module handles LeaderAndIsr, StopReplica and their responses. UpdateMetadata is in
`update_metadata_wire`, and AlterPartition is in `alter_partition_wire`. A `..._request` function
returns the message and its version. A `..._value` function accepts every version that includes
topic ids.

The messages do not contain topic configs, so the receiver must supply them as `configs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeVar

from barnabas.cluster.controller_requests import (
    LONGEST_CAUSE,
    NO_EPOCH,
    ControlRequest,
    LeaderAndIsr,
    PartitionState,
    StopReplica,
    UpdateMetadata,
)
from barnabas.cluster.image import BrokerImage, PartitionImage, TopicImage
from barnabas.controller.broker_versions import LEADER_AND_ISR_VERSION, STOP_REPLICA_VERSION
from barnabas.errors import NONE, UnsupportedVersion, error_for_code
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
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from barnabas.types import TopicPartition, by_topic

PARTITIONS_AT_ONCE: Final = 4_000
"""The maximum number of partitions in a request.

That many partitions take a quarter of a megabyte, and up to 820 kB more if their causes are as long
as possible. The receiver processes them in milliseconds.
"""

HAS_TOPIC_IDS: Final = 5
"""The first version of LeaderAndIsr with topic ids (IBP 2.8, KIP-516)."""

_GROUPS_BY_TOPIC: Final = 2
_STOP_HAS_TOPICS: Final = 1
_STOP_HAS_STATES: Final = 3

Part = TypeVar("Part")
Codes = Mapping[TopicPartition, int]


def in_pieces(
    value: ControlRequest, partitions_at_once: int = PARTITIONS_AT_ONCE
) -> Iterator[ControlRequest]:
    """Split a request into several requests, in order, that stay within the maximum number of
    partitions.

    A topic is never split across several UpdateMetadata requests.
    """
    if isinstance(value, UpdateMetadata):
        return _updates(value, partitions_at_once)
    return (
        value._replace(partitions=piece)  # type: ignore[arg-type]
        for piece in _chunks(value.partitions, partitions_at_once)
    )


def _updates(value: UpdateMetadata, partitions_at_once: int) -> Iterator[UpdateMetadata]:
    """Yield at least one update, so that the list of brokers is sent even if there are
    no topics.
    """
    rest = value._replace(topics=())
    piece: list[TopicImage] = []
    size = 0
    for topic in value.topics:
        if piece and size + len(topic.partitions) > partitions_at_once:
            yield rest._replace(topics=tuple(piece))
            rest, piece, size = rest._replace(removed_topics=()), [], 0
        piece.append(topic)
        size += len(topic.partitions)
    yield rest._replace(topics=tuple(piece))


def _chunks(parts: Iterable[Part], size: int) -> Iterator[tuple[Part, ...]]:
    iterator = iter(parts)
    while chunk := tuple(islice(iterator, size)):
        yield chunk


# --- LeaderAndIsr --------------------------------------------------------------------------------


def leader_and_isr_request(
    value: LeaderAndIsr, broker_epoch: int, live: Mapping[int, BrokerImage]
) -> tuple[LeaderAndIsrRequest, int]:
    """Build a LeaderAndIsr. `broker_epoch` is the receiver's epoch, and `live` contains the
    leaders' addresses.
    """
    topics: dict[bytes, LeaderAndIsrTopicState] = {}
    leaders: dict[int, LeaderAndIsrLiveLeader] = {}
    for state in value.partitions:
        topic = topics.get(state.topic_id)
        if topic is None:
            name = state.topic_partition.topic
            topic = LeaderAndIsrTopicState(topic_name=name, topic_id=state.topic_id)
            topics[state.topic_id] = topic
        topic.partition_states.append(_leader_and_isr_state(state))
        leader = live.get(state.partition.leader)
        # This field contains only one address for each leader, not one for each listener.
        if leader is not None and leader.endpoints and leader.broker_id not in leaders:
            leaders[leader.broker_id] = LeaderAndIsrLiveLeader(
                broker_id=leader.broker_id,
                host_name=leader.endpoints[0].host,
                port=leader.endpoints[0].port,
            )
    request = LeaderAndIsrRequest(
        controller_id=value.controller_id,
        controller_epoch=value.controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=list(topics.values()),
        live_leaders=list(leaders.values()),
    )
    return request, LEADER_AND_ISR_VERSION


def _leader_and_isr_state(state: PartitionState) -> LeaderAndIsrPartitionState:
    partition = state.partition
    return LeaderAndIsrPartitionState(
        partition_index=state.topic_partition.partition,
        controller_epoch=partition.controller_epoch,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        partition_epoch=partition.partition_epoch,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding),
        removing_replicas=list(partition.removing),
        is_new=state.is_new,
        cause=state.cause[:LONGEST_CAUSE],
    )


def leader_and_isr_topics(message: LeaderAndIsrRequest) -> dict[str, bytes]:
    """Return the topics whose configs are needed to build the value, with their ids."""
    return {topic.topic_name: topic.topic_id for topic in message.topic_states}


def leader_and_isr_value(
    message: LeaderAndIsrRequest, version: int, configs: Mapping[str, Mapping[str, str]]
) -> LeaderAndIsr:
    """Return the request as a value. If the version has no topic ids, they must have been added to
    the message.

    Raises UnsupportedVersion for a version below 2 (IBP 2.2).
    """
    if version < _GROUPS_BY_TOPIC:
        raise UnsupportedVersion(f"LeaderAndIsr version {version} has no broker epoch")
    states = []
    for topic in message.topic_states:
        name = topic.topic_name
        for each in topic.partition_states:
            partition = PartitionImage(
                each.leader,
                each.leader_epoch,
                tuple(each.isr),
                tuple(each.replicas),
                each.partition_epoch,
                each.controller_epoch,
                adding=tuple(each.adding_replicas),
                removing=tuple(each.removing_replicas),
            )
            names = TopicPartition(name, each.partition_index)
            states.append(
                PartitionState(
                    names, topic.topic_id, partition, configs[name], each.is_new, each.cause
                )
            )
    return LeaderAndIsr(message.controller_id, message.controller_epoch, tuple(states))


def leader_and_isr_response(
    value: LeaderAndIsr, codes: Codes, version: int = LEADER_AND_ISR_VERSION
) -> LeaderAndIsrResponse:
    """Build the receiver's response in this version."""
    if version < HAS_TOPIC_IDS:
        names = [state.topic_partition for state in value.partitions]
        return LeaderAndIsrResponse(
            partition_errors=[
                LeaderAndIsrPartitionError(
                    topic_name=name.topic, partition_index=name.partition, error_code=codes[name]
                )
                for name in names
            ]
        )
    topics: dict[bytes, LeaderAndIsrTopicError] = {}
    for state in value.partitions:
        topic = topics.get(state.topic_id)
        if topic is None:
            topic = topics[state.topic_id] = LeaderAndIsrTopicError(topic_id=state.topic_id)
        topic.partition_errors.append(
            LeaderAndIsrPartitionError(
                partition_index=state.topic_partition.partition,
                error_code=codes[state.topic_partition],
            )
        )
    return LeaderAndIsrResponse(topics=list(topics.values()))


def leader_and_isr_codes(
    value: LeaderAndIsr, response: LeaderAndIsrResponse
) -> dict[TopicPartition, int]:
    """Return each partition's error code. Raises the top-level error."""
    check(response.error_code)
    names = {state.topic_id: state.topic_partition.topic for state in value.partitions}
    return {
        TopicPartition(names[topic.topic_id], each.partition_index): each.error_code
        for topic in response.topics
        if topic.topic_id in names
        for each in topic.partition_errors
    }


# --- StopReplica ---------------------------------------------------------------------------------


def stop_replica_request(value: StopReplica, broker_epoch: int) -> tuple[StopReplicaRequest, int]:
    """Build a StopReplica. `broker_epoch` is the receiver's epoch."""
    states = [
        StopReplicaTopicState(
            topic_name=name,
            partition_states=[
                StopReplicaPartitionState(
                    partition_index=number,
                    leader_epoch=value.leader_epoch(TopicPartition(name, number)),
                    delete_partition=value.delete,
                )
                for number in numbers
            ],
        )
        for name, numbers in by_topic(value.partitions).items()
    ]
    request = StopReplicaRequest(
        controller_id=value.controller_id,
        controller_epoch=value.controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=states,
    )
    return request, STOP_REPLICA_VERSION


def stop_replica_values(message: StopReplicaRequest, version: int) -> list[StopReplica]:
    """Return one value for the replicas to stop, and another for the replicas to delete."""
    sorted_out: dict[bool, dict[TopicPartition, int]] = {False: {}, True: {}}
    for name, leader_epoch, delete in _stops(message, version):
        sorted_out[delete][name] = leader_epoch
    return [
        StopReplica(
            message.controller_id,
            message.controller_epoch,
            tuple(epochs),
            delete,
            {name: epoch for name, epoch in epochs.items() if epoch != NO_EPOCH},
        )
        for delete, epochs in sorted_out.items()
        if epochs
    ]


def _stops(message: StopReplicaRequest, version: int) -> Iterator[tuple[TopicPartition, int, bool]]:
    """Yield each partition with its leader epoch and whether it must be deleted."""
    if version >= _STOP_HAS_STATES:
        for state in message.topic_states:
            for each in state.partition_states:
                name = TopicPartition(state.topic_name, each.partition_index)
                yield name, each.leader_epoch, each.delete_partition
    elif version >= _STOP_HAS_TOPICS:
        for topic in message.topics:
            for number in topic.partition_indexes:
                yield TopicPartition(topic.name, number), NO_EPOCH, message.delete_partitions
    else:
        for one in message.ungrouped_partitions:
            name = TopicPartition(one.topic_name, one.partition_index)
            yield name, NO_EPOCH, message.delete_partitions


def stop_replica_response(codes: Codes) -> StopReplicaResponse:
    return StopReplicaResponse(
        partition_errors=[
            StopReplicaPartitionError(
                topic_name=name.topic, partition_index=name.partition, error_code=code
            )
            for name, code in codes.items()
        ]
    )


def stop_replica_codes(response: StopReplicaResponse) -> dict[TopicPartition, int]:
    """Return each partition's error code. Raises the top-level error."""
    check(response.error_code)
    return {
        TopicPartition(each.topic_name, each.partition_index): each.error_code
        for each in response.partition_errors
    }


def check(error_code: int) -> None:
    """Raise the KafkaError that corresponds to a response's error code, if it is an error."""
    if error_code != NONE:
        raise error_for_code(error_code)
