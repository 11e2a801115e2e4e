"""Converts UpdateMetadata values to messages, and vice versa.

A value contains complete topics, whereas a message may contain only some of their partitions. The
other partitions are taken from the receiver's image, in which the state of a partition is never
replaced by an older state. The message does not contain the cluster id and the reassignments, which
are preserved from the image, nor the epochs of other brokers, which are set to -1 (unknown).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from barnabas.cluster.controller_requests import UpdateMetadata
from barnabas.cluster.image import (
    BrokerImage,
    ClusterImage,
    Endpoint,
    PartitionImage,
    TopicImage,
)
from barnabas.controller.broker_versions import UPDATE_METADATA_VERSION
from barnabas.errors import InvalidRequest, UnsupportedVersion
from barnabas.protocol.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from barnabas.types import may_be_same_topic

_HAS_LISTENERS: Final = 3
_HAS_ENDPOINTS: Final = 1
_GROUPS_BY_TOPIC: Final = 5

HAS_TOPIC_IDS: Final = 7
"""The first version of UpdateMetadata with topic ids (IBP 2.8, KIP-516)."""

_BEING_DELETED: Final = -2
"""The leader of all partitions in a topic that is being deleted (LeaderDuringDelete in Kafka)."""

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")  # indexed by protocol code

Configs = Mapping[str, Mapping[str, str]]


def update_metadata_request(
    value: UpdateMetadata, broker_epoch: int, topics: Mapping[str, TopicImage]
) -> tuple[UpdateMetadataRequest, int]:
    """Build an UpdateMetadata. `broker_epoch` is the receiver's epoch. `topics` also contains the
    topics that were removed.

    If a removed topic is no longer in the controller's image, only one of its partitions is sent,
    which is enough for Barnabas.
    """
    live = {broker.broker_id for broker in value.brokers}
    states = [_removal(name, topics.get(name)) for name in value.removed_topics]
    states += [
        UpdateMetadataTopicState(
            topic_name=topic.name,
            topic_id=topic.topic_id,
            partition_states=[
                _state(number, partition, live) for number, partition in topic.partitions.items()
            ],
        )
        for topic in value.topics
    ]
    request = UpdateMetadataRequest(
        controller_id=value.controller_id,
        controller_epoch=value.controller_epoch,
        broker_epoch=broker_epoch,
        topic_states=states,
        live_brokers=[_broker(broker) for broker in value.brokers],
    )
    return request, UPDATE_METADATA_VERSION


def _removal(name: str, topic: TopicImage | None) -> UpdateMetadataTopicState:
    numbers = (0,) if topic is None else tuple(topic.partitions)
    return UpdateMetadataTopicState(
        topic_name=name,
        topic_id=bytes(16) if topic is None else topic.topic_id,
        partition_states=[
            UpdateMetadataPartitionState(partition_index=number, leader=_BEING_DELETED)
            for number in numbers
        ],
    )


def _state(number: int, partition: PartitionImage, live: set[int]) -> UpdateMetadataPartitionState:
    offline = [
        replica
        for replica in partition.replicas
        if replica not in live or replica in partition.offline_replicas
    ]
    return UpdateMetadataPartitionState(
        partition_index=number,
        controller_epoch=partition.controller_epoch,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=list(partition.isr),
        zk_version=partition.partition_epoch,
        replicas=list(partition.replicas),
        offline_replicas=offline,
    )


def _broker(broker: BrokerImage) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker.broker_id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=_PROTOCOLS.index(endpoint.security_protocol),
            )
            for endpoint in broker.endpoints
        ],
        rack=broker.rack,
    )


# --- the receiver's side -------------------------------------------------------------------------


def update_metadata_topics(message: UpdateMetadataRequest) -> dict[str, bytes]:
    """Return the topics whose configs are needed to build the value, with their ids."""
    return {each.topic_name: each.topic_id for each in message.topic_states if not _is_going(each)}


def update_metadata_value(
    message: UpdateMetadataRequest, version: int, image: ClusterImage, configs: Configs
) -> UpdateMetadata:
    """Return the request as a value. `image` is the current image of the receiver.

    The configs in the image are preserved, because they may have changed since `configs` were read.
    If the version has no topic ids, they must have been added to the message. Raises InvalidRequest
    for an unknown security protocol, and UnsupportedVersion if the request contains topics in a
    version below 5 (IBP 2.2).
    """
    assert image.cluster_id is not None, "a broker knows its cluster before the cluster knows it"
    if message.ungrouped_partition_states or (message.topic_states and version < _GROUPS_BY_TOPIC):
        raise UnsupportedVersion(f"UpdateMetadata version {version} has no broker epoch")
    live = {broker.id for broker in message.live_brokers}
    topics = {}
    removed = []
    for topic in message.topic_states:
        # LeaderDuringDelete means that the topic must be forgotten before its replicas are deleted.
        if _is_going(topic):
            removed.append(topic.topic_name)
        else:
            topics[topic.topic_name] = _topic(topic, image, configs, live)
    return UpdateMetadata(
        message.controller_id,
        message.controller_epoch,
        image.cluster_id,
        tuple(_broker_image(broker, version) for broker in message.live_brokers),
        tuple(topics.values()),
        tuple(removed),
    )


def _is_going(topic: UpdateMetadataTopicState) -> bool:
    """Return whether the topic is being deleted. Any of its partitions shows this."""
    return any(each.leader == _BEING_DELETED for each in topic.partition_states)


def _topic(
    topic: UpdateMetadataTopicState, image: ClusterImage, configs: Configs, live: set[int]
) -> TopicImage:
    name = topic.topic_name
    known = image.topics.get(name)
    partitions: dict[int, PartitionImage] = {}
    # If the id differs, this is a different topic, so nothing may be preserved from the old one.
    if known is not None and may_be_same_topic(known.topic_id, topic.topic_id):
        partitions.update(known.partitions)
        config = known.config
    else:
        config = configs[name]
    for each in topic.partition_states:
        before = partitions.get(each.partition_index)
        # The state in the image may already be newer.
        if before is None or before.partition_epoch <= each.zk_version:
            partitions[each.partition_index] = _partition(each, before, live)
    return TopicImage(name, topic.topic_id, MappingProxyType(partitions), config)


def _partition(
    state: UpdateMetadataPartitionState, before: PartitionImage | None, live: set[int]
) -> PartitionImage:
    replicas = tuple(state.replicas)
    partition = PartitionImage(
        state.leader,
        state.leader_epoch,
        tuple(state.isr),
        replicas,
        state.zk_version,
        state.controller_epoch,
        tuple(replica for replica in state.offline_replicas if replica in live),
    )
    # The message contains no reassignments. If the replicas are the same, so is the reassignment.
    if before is not None and before.replicas == replicas:
        partition = partition._replace(adding=before.adding, removing=before.removing)
    return partition


def _broker_image(broker: UpdateMetadataBroker, version: int) -> BrokerImage:
    if version < _HAS_ENDPOINTS:
        plain = Endpoint(_PROTOCOLS[0], broker.v0_host, broker.v0_port, _PROTOCOLS[0])
        return BrokerImage(broker.id, (plain,), None, -1)
    return BrokerImage(broker.id, tuple(_endpoints(broker, version)), broker.rack, -1)


def _endpoints(broker: UpdateMetadataBroker, version: int) -> Iterator[Endpoint]:
    for each in broker.endpoints:
        if not 0 <= each.security_protocol < len(_PROTOCOLS):
            raise InvalidRequest(
                f"broker {broker.id}: unknown security protocol {each.security_protocol}"
            )
        protocol = _PROTOCOLS[each.security_protocol]
        listener = each.listener if version >= _HAS_LISTENERS else protocol
        yield Endpoint(listener, each.host, each.port, protocol)
