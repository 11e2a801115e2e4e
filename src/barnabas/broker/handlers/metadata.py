"""Metadata (key 3): list brokers, topics and partition leaders.

The response is built from the image that UpdateMetadata maintains, and never from the metadata
store. If topics are created automatically, the response includes them with their leaders, so that
clients do not have to ask again.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import Any

from barnabas.broker.context import Context
from barnabas.broker.controller.auto_topic_creation import (
    Failures,
    create_topics,
    is_enabled,
    is_missing,
)
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.slices import Pace, Slices, clear_in_slices, run_slices
from barnabas.broker.security.authorized_operations import authorized_operations
from barnabas.cluster.image import BrokerImage, PartitionImage, TopicImage
from barnabas.cluster.layout import INTERNAL_TOPICS
from barnabas.errors import (
    NONE,
    InvalidRequest,
    InvalidTopic,
    LeaderNotAvailable,
    ListenerNotFound,
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
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.topic_name import check_topic_name

_NO_TOPIC_ID = bytes(16)
_NO_LEADER = -1
_NULL_MEANS_ALL = 1  # in version 0, an empty list means all topics; in later versions, null does
_ALLOWS_AUTO_CREATION = 4
_TELLS_LISTENERS = 6  # older versions return LEADER_NOT_AVAILABLE instead
_ASKS_BY_ID = 12  # versions 10 and 11 have the field, but brokers did not support it


def handle(context: Context, request: MetadataRequest) -> Outcome:
    if context.node.view.has_metadata:
        return run_slices(_answer(context, request))
    return _answer_with_metadata(context, request)


async def _answer_with_metadata(context: Context, request: MetadataRequest) -> MetadataResponse:
    """Wait until the first metadata has arrived before answering.

    Otherwise, some clients would give up on a topic because this broker does not know it yet.
    """
    await context.node.view.until_metadata()
    answer = run_slices(_answer(context, request))
    return answer if isinstance(answer, MetadataResponse) else await answer


def _answer(
    context: Context, request: MetadataRequest
) -> Slices[MetadataResponse | Coroutine[Any, Any, MetadataResponse]]:
    wanted = request.topics
    if wanted is None or (not wanted and context.version < _NULL_MEANS_ALL):
        return (yield from _respond(context, request, _all_topics(context)))
    ids: dict[bytes, None] = {}
    names: dict[str, None] = {}
    pace = Pace()
    is_refused = False
    for each in wanted:
        if each.topic_id != _NO_TOPIC_ID:
            ids[each.topic_id] = None
        elif each.name is not None:
            names[each.name] = None
        is_refused |= each.name is None or each.topic_id != _NO_TOPIC_ID
        if pace.is_over():
            yield
    if context.version < _ASKS_BY_ID and is_refused:
        return MetadataResponse(topics=[_refusal(each) for each in wanted])
    yield from clear_in_slices(wanted)
    # As in Kafka, any topic id makes this a request by id, and names are ignored (KIP-516).
    if ids:
        found = (_by_id(context, topic_id) for topic_id in ids)
        return (yield from _respond(context, request, found))
    # Before version 4, clients could not disable auto-creation (TP-6).
    is_allowed = context.version < _ALLOWS_AUTO_CREATION or request.allow_auto_topic_creation
    if is_allowed and is_enabled(context):
        missing = []
        for name in names:
            if is_missing(context, name):
                missing.append(name)
            if pace.is_over():
                yield
        if missing:
            return _create_and_respond(context, request, list(names), missing)
    topics = (_topic(context, name, {}) for name in names)
    return (yield from _respond(context, request, topics))


def _refusal(wanted: MetadataRequestTopic) -> MetadataResponseTopic:
    """Return the error for a topic.

    In versions that have no topic ids, the name must not be null.
    """
    return _failure(wanted.name or "", wanted.topic_id, InvalidRequest.code)


async def _create_and_respond(
    context: Context, request: MetadataRequest, names: Sequence[str], missing: Sequence[str]
) -> MetadataResponse:
    failures = await create_topics(context, missing)
    topics = (_topic(context, name, failures) for name in names)
    answer = run_slices(_respond(context, request, topics))
    return answer if isinstance(answer, MetadataResponse) else await answer


def _respond(
    context: Context, request: MetadataRequest, wanted: Iterable[MetadataResponseTopic]
) -> Slices[MetadataResponse]:
    """Build the response. `wanted` is consumed in slices, topic by topic."""
    pace = Pace()
    topics = []
    for found in wanted:
        topics.append(found)
        if pace.is_over(1 + len(found.partitions) // 2):
            yield
    image = context.node.image
    brokers = []
    for broker in image.brokers.values():
        host, port = context.address_of(broker)
        brokers.append(
            MetadataResponseBroker(node_id=broker.broker_id, host=host, port=port, rack=broker.rack)
        )
    response = MetadataResponse(
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        may_see = context.allowed_to(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        response.cluster_authorized_operations = (
            authorized_operations(context, ResourceType.CLUSTER, CLUSTER_NAME) if may_see else 0
        )
    if request.include_topic_authorized_operations:
        for topic in topics:
            if topic.name is not None and topic.error_code != TopicAuthorizationFailed.code:
                topic.topic_authorized_operations = authorized_operations(
                    context, ResourceType.TOPIC, topic.name
                )
                if pace.is_over():
                    yield
    return response


def _all_topics(context: Context) -> Iterator[MetadataResponseTopic]:
    """Yield every topic that the client may see. Other topics are omitted, without an error."""
    for topic in list(context.node.image.topics.values()):
        if context.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            yield _known(context, topic)


def _by_id(context: Context, topic_id: bytes) -> MetadataResponseTopic:
    """Return the topic with this id.

    Ids are not secret. The error may therefore reveal that the topic exists, but not its name.
    """
    image = context.node.image
    name = image.topic_names.get(topic_id)
    if name is None:
        return _failure(None, topic_id, UnknownTopicId.code)
    if not context.is_allowed(name):
        return _failure(None, topic_id, TopicAuthorizationFailed.code)
    return _known(context, image.topics[name])


def _topic(context: Context, name: str, failures: Failures) -> MetadataResponseTopic:
    if not context.is_allowed(name):
        # Do not reveal that the topic exists or that it is internal.
        return _failure(name, _NO_TOPIC_ID, TopicAuthorizationFailed.code)
    topic = context.node.image.topics.get(name)
    if topic is not None:
        return _known(context, topic)
    code = failures[name].code if name in failures else _why_unknown(name)
    failed = _failure(name, _NO_TOPIC_ID, code)
    failed.is_internal = name in INTERNAL_TOPICS
    return failed


def _why_unknown(name: str) -> int:
    try:
        check_topic_name(name)
    except InvalidTopic as error:
        return error.code
    return UnknownTopicOrPartition.code


def _failure(name: str | None, topic_id: bytes, error_code: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error_code, name=name, topic_id=topic_id, partitions=[])


def _known(context: Context, topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _partition(context, index, topic.partitions[index])
            for index in sorted(topic.partitions)
        ],
    )


def _partition(
    context: Context, index: int, partition: PartitionImage
) -> MetadataResponsePartition:
    brokers = context.node.image.brokers
    # If the leader has no listener with the same name, the client cannot reach it, so no leader is
    # reported.
    error_code = _why_not_led(context, brokers.get(partition.leader))
    return MetadataResponsePartition(
        error_code=error_code,
        partition_index=index,
        leader_id=partition.leader if error_code == NONE else _NO_LEADER,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        # A replica is offline if its broker or its log directory is offline (KIP-112).
        offline_replicas=[
            replica
            for replica in partition.replicas
            if replica not in brokers or replica in partition.offline_replicas
        ],
    )


def _why_not_led(context: Context, leader: BrokerImage | None) -> int:
    if leader is None:
        return LeaderNotAvailable.code
    if any(endpoint.listener == context.client.listener for endpoint in leader.endpoints):
        return NONE
    return (ListenerNotFound if context.version >= _TELLS_LISTENERS else LeaderNotAvailable).code
