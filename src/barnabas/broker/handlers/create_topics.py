"""CreateTopics (key 19): create topics. The response is sent once the topics have leaders."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

from barnabas.broker.configs.effective_config import topic_configs
from barnabas.broker.context import Context
from barnabas.broker.controller.deadline import within
from barnabas.broker.outcome import Outcome
from barnabas.broker.quotas.mutation_quota import MutationQuota, mutation_quota
from barnabas.broker.runtime.slices import in_slices
from barnabas.cluster.image import TopicImage
from barnabas.config import topic_warnings
from barnabas.controller.topics import MAX_NEW_PARTITIONS, NewTopic
from barnabas.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    KafkaError,
    PolicyViolation,
    RequestTimedOut,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType

_log = logging.getLogger(__name__)

_BROKER_DEFAULT = -1
_TOPICS_AT_ONCE = 200
_TELLS_CONFIGS = 5  # KIP-525
_STRICT_QUOTA = 6  # KIP-599
_KRAFTS_OWN = "__cluster_metadata"


def handle(context: Context, request: CreateTopicsRequest) -> Outcome:
    if len(request.topics) > MAX_NEW_PARTITIONS:
        return _refuse_all(context, request)
    return _create_all(context, request)


async def _refuse_all(context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Reject all topics if there would be too many partitions in total, as Kafka's
    controller does.
    """
    count = len(request.topics)
    error = PolicyViolation(
        f"{count} topics at once; at most {MAX_NEW_PARTITIONS} are allowed, so use several requests"
    )
    results = [_result(context, topic, error) async for topic in in_slices(request.topics)]
    return CreateTopicsResponse(topics=results)


async def _create_all(context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    times = Counter([topic.name async for topic in in_slices(request.topics)])
    # CREATE on the cluster covers every topic, but CREATE on the topic is sufficient. Therefore, a
    # denial on the cluster is not logged.
    may_create_all = context.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    outcomes: list[TopicImage | NewTopic | KafkaError] = []
    async for topic in in_slices(request.topics):
        try:
            if times[topic.name] > 1:
                raise InvalidRequest("Found multiple entries for this topic.")
            # Kafka rejects the name of KRaft's log with the same error for every client, whether
            # authorized or not.
            if topic.name == _KRAFTS_OWN or not (may_create_all or context.is_allowed(topic.name)):
                raise TopicAuthorizationFailed("Authorization failed.")
            outcomes.append(_new_topic(context, topic))
        except KafkaError as error:
            # The tracebacks of the errors refer to this frame. The cycle would stay in memory until
            # the garbage collector runs.
            outcomes.append(error.with_traceback(None))
    quota = mutation_quota(context, strict_from=_STRICT_QUOTA)
    # KIP-599: the quota counts partitions. If it is exceeded, only individual topics are rejected
    # and not the whole request.
    if quota.is_limited and not request.validate_only:
        outcomes = await _within_quota(context, quota, outcomes)
    wanted = [each for each in outcomes if isinstance(each, NewTopic)]
    if wanted:
        made = iter(await _create(context, request, wanted))
        outcomes = [next(made) if isinstance(each, NewTopic) else each for each in outcomes]
    return CreateTopicsResponse(
        throttle_time_ms=quota.throttle_ms,
        topics=[
            _result(context, topic, outcome)
            async for topic, outcome in in_slices(zip(request.topics, outcomes, strict=True))
        ],
    )


async def _within_quota(
    context: Context, quota: MutationQuota, outcomes: list[TopicImage | NewTopic | KafkaError]
) -> list[TopicImage | NewTopic | KafkaError]:
    """Reject the topics that exceed the client's quota. Invalid topics are not charged."""
    wanted = [each for each in outcomes if isinstance(each, NewTopic)]
    checked = iter(await context.node.controller.create_topics(wanted, validate_only=True))
    judged: list[TopicImage | NewTopic | KafkaError] = []
    for each in outcomes:
        outcome = each
        if isinstance(each, NewTopic):
            found = next(checked)
            try:
                if isinstance(found, KafkaError):
                    raise found
                quota.take(len(found.partitions))
            except KafkaError as error:
                outcome = error.with_traceback(None)
        judged.append(outcome)
    return judged


async def _create(
    context: Context, request: CreateTopicsRequest, wanted: list[NewTopic]
) -> list[TopicImage | KafkaError]:
    work = _create_in_parts(context, request, wanted)
    if request.validate_only:
        return await work
    try:
        outcomes = await within(request.timeout_ms, work)
    except KafkaError as error:
        return [error] * len(wanted)
    for topic, outcome in zip(wanted, outcomes, strict=True):
        if not isinstance(outcome, KafkaError):
            for warning in topic_warnings(topic.configs):
                _log.warning("topic %s: %s", topic.name, warning)
    if request.timeout_ms > 0:
        return outcomes
    # In this case, Kafka does not wait and therefore does not know the outcome. librdkafka relies
    # on this error.
    started = RequestTimedOut(
        "started; with a timeout of 0 the broker does not wait for it to complete"
    )
    return [each if isinstance(each, KafkaError) else started for each in outcomes]


async def _create_in_parts(
    context: Context, request: CreateTopicsRequest, wanted: list[NewTopic]
) -> list[TopicImage | KafkaError]:
    """Create the topics in several parts, so that other tasks can run between the parts."""
    create, outcomes = context.node.controller.create_topics, []
    for first in range(0, len(wanted), _TOPICS_AT_ONCE):
        part = wanted[first : first + _TOPICS_AT_ONCE]
        outcomes += await create(part, validate_only=request.validate_only)
        await asyncio.sleep(0)
    return outcomes


def _new_topic(context: Context, topic: CreatableTopic) -> NewTopic:
    """Check the requested topic in the same order as Kafka, and fill in the broker's defaults."""
    if topic.name in context.node.image.topics:
        raise TopicAlreadyExists(f"Topic '{topic.name}' already exists.")
    nulls = [entry.name for entry in topic.configs if entry.value is None]
    if nulls:
        raise InvalidConfig(f"Null value not supported for topic configs: {','.join(nulls)}")
    config = context.node.config
    replication_factor = config.int("default.replication.factor")
    return NewTopic(
        topic.name,
        partitions=_or_default(topic.num_partitions, config.int("num.partitions")),
        replication_factor=_or_default(topic.replication_factor, replication_factor),
        assignment=_assignment(topic),
        configs={entry.name: entry.value for entry in topic.configs if entry.value is not None},
        cause=context.origin,
    )


def _or_default(given: int, default: int) -> int:
    return default if given == _BROKER_DEFAULT else given


def _assignment(topic: CreatableTopic) -> dict[int, list[int]] | None:
    if not topic.assignments:
        return None
    if len(topic.assignments) > MAX_NEW_PARTITIONS:
        raise InvalidPartitions(
            f"{len(topic.assignments)} partitions at once; at most {MAX_NEW_PARTITIONS} are allowed"
        )
    # The assignment implies both numbers. Kafka rejects explicit numbers even if they match the
    # assignment.
    if topic.num_partitions != _BROKER_DEFAULT or topic.replication_factor != _BROKER_DEFAULT:
        raise InvalidRequest(
            "Both numPartitions or replicationFactor and replicasAssignments were set. "
            "Both cannot be used at the same time."
        )
    assignment = {each.partition_index: list(each.broker_ids) for each in topic.assignments}
    if sorted(assignment) != list(range(len(topic.assignments))):
        raise InvalidReplicaAssignment(
            f"topic {topic.name}: partitions must be numbered from 0 without gaps"
        )
    return assignment


def _result(
    context: Context, topic: CreatableTopic, outcome: TopicImage | NewTopic | KafkaError
) -> CreatableTopicResult:
    result = CreatableTopicResult(name=topic.name, error_message=None)
    tells_configs = context.version >= _TELLS_CONFIGS
    may_see = not tells_configs or context.may(
        Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name
    )
    if not may_see and (
        isinstance(outcome, TopicAuthorizationFailed) or not isinstance(outcome, KafkaError)
    ):
        result.topic_config_error_code = TopicAuthorizationFailed.code
    if isinstance(outcome, KafkaError):
        result.error_code, result.error_message = outcome.code, str(outcome)
    elif isinstance(outcome, TopicImage):
        result.topic_id = outcome.topic_id
        if tells_configs and may_see:
            result.num_partitions = len(outcome.partitions)
            result.replication_factor = len(outcome.partitions[0].replicas)
            result.configs = _configs(context, outcome)
    return result


def _configs(context: Context, topic: TopicImage) -> list[CreatableTopicConfigs]:
    """Return the effective configs of the new topic, so that the client needs no DescribeConfigs
    (KIP-525).
    """
    return [
        CreatableTopicConfigs(
            name=each.key.name,
            value=each.value,
            read_only=False,
            config_source=each.source,
            is_sensitive=each.key.is_sensitive,
        )
        for each in topic_configs(context.node.config, topic.config)
    ]
