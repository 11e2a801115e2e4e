"""Metadata (key 3): brokers, topics, and who leads what; also how topics come to be by being asked.

Answered from the image that UpdateMetadata made, never from the store. A topic that is created on
the way (TP-6) is in the answer at once, with its leaders, so no client has to ask again.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.broker.authorization import Operation, ResourceType
from barnabas.broker.context import Context
from barnabas.broker.router import Outcome
from barnabas.cluster.image import TopicImage
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.controller.topics import NewTopic, check_topic_name
from barnabas.errors import (
    InvalidTopic,
    KafkaError,
    LeaderNotAvailable,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_NO_TOPIC_ID = bytes(16)
_NULL_MEANS_ALL = 1  # version 0 says "all topics" by an empty list, later ones by null
_ALLOWS_AUTO_CREATION = 4


def handle(context: Context, request: MetadataRequest) -> Outcome:
    wanted = request.topics
    if wanted is None or (not wanted and context.version < _NULL_MEANS_ALL):
        return _respond(context, _all_topics(context))
    missing = [topic.name for topic in wanted if _may_create(context, request, topic.name)]
    if missing:
        return _create_and_respond(context, wanted, [name for name in missing if name])
    return _respond(context, [_topic(context, topic, {}) for topic in wanted])


def _may_create(context: Context, request: MetadataRequest, name: str | None) -> bool:
    """TP-6: unknown, wanted by the client, allowed by the broker."""
    node = context.node
    return (
        name is not None
        and name not in node.image.topics
        and name not in INTERNAL_TOPICS
        and (context.version < _ALLOWS_AUTO_CREATION or request.allow_auto_topic_creation)
        and node.config.bool("auto.create.topics.enable")
        and context.allowed_to(Operation.CREATE, ResourceType.TOPIC, name)
    )


async def _create_and_respond(
    context: Context, wanted: Sequence[MetadataRequestTopic], missing: Sequence[str]
) -> MetadataResponse:
    node = context.node
    failures: dict[str, KafkaError] = {}
    for name in missing:
        try:
            await node.controller.create_topic(
                NewTopic(
                    name,
                    partitions=node.config.int("num.partitions"),
                    replication_factor=node.config.int("default.replication.factor"),
                )
            )
        except TopicAlreadyExists:
            pass  # another client asked at the same moment: it is there, which is all we want
        except KafkaError as error:
            failures[name] = error
    return _respond(context, [_topic(context, topic, failures) for topic in wanted])


def _respond(context: Context, topics: list[MetadataResponseTopic]) -> MetadataResponse:
    image = context.node.image
    brokers = []
    for broker in image.brokers.values():
        host, port = context.address_of(broker)
        brokers.append(
            MetadataResponseBroker(node_id=broker.broker_id, host=host, port=port, rack=broker.rack)
        )
    return MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
    )


def _all_topics(context: Context) -> list[MetadataResponseTopic]:
    """Every topic that the caller may see; what one may not see is left out, not refused."""
    return [
        _known(topic) for topic in context.node.image.topics.values() if context.allowed(topic.name)
    ]


def _topic(
    context: Context, wanted: MetadataRequestTopic, failures: dict[str, KafkaError]
) -> MetadataResponseTopic:
    image = context.node.image
    name = wanted.name
    if name is None:
        name = image.topic_names.get(wanted.topic_id)
        if name is None:
            return _unknown(None, wanted.topic_id, UnknownTopicId.code)
    if not context.allowed(name):
        return _unknown(name, _NO_TOPIC_ID, TopicAuthorizationFailed.code)
    topic = image.topics.get(name)
    if topic is not None:
        return _known(topic)
    if name in failures:
        return _unknown(name, _NO_TOPIC_ID, failures[name].code)
    return _unknown(name, _NO_TOPIC_ID, _why_unknown(context, name))


def _why_unknown(context: Context, name: str) -> int:
    try:
        check_topic_name(name)
    except InvalidTopic as error:
        return error.code
    return UnknownTopicOrPartition.code


def _unknown(name: str | None, topic_id: bytes, error_code: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error_code, name=name, topic_id=topic_id, partitions=[])


def _known(topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(
                error_code=0 if partition.leader >= 0 else LeaderNotAvailable.code,
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                offline_replicas=[],
            )
            for index, partition in sorted(topic.partitions.items())
        ],
    )
