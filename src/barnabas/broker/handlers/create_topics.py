"""CreateTopics (key 19): validated one by one, created by the controller, answered when led."""

from __future__ import annotations

from barnabas.broker.authorization import CLUSTER_NAME, Operation, ResourceType
from barnabas.broker.context import Context
from barnabas.broker.effective_config import topic_configs
from barnabas.broker.router import Outcome
from barnabas.controller.topics import NewTopic
from barnabas.errors import (
    InvalidReplicaAssignment,
    InvalidRequest,
    KafkaError,
    TopicAuthorizationFailed,
)
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_BROKER_DEFAULT = -1
_TELLS_CONFIGS = 5  # KIP-525


def handle(context: Context, request: CreateTopicsRequest) -> Outcome:
    return _create_all(context, request)


async def _create_all(context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    names = [topic.name for topic in request.topics]
    results = []
    for topic in request.topics:
        try:
            if names.count(topic.name) > 1:
                raise InvalidRequest(f"topic {topic.name} is listed more than once")
            results.append(await _create(context, topic, request.validate_only))
        except KafkaError as error:
            results.append(
                CreatableTopicResult(
                    name=topic.name,
                    error_code=error.code,
                    error_message=str(error),
                    num_partitions=-1,
                    replication_factor=-1,
                    configs=[],
                )
            )
    return CreateTopicsResponse(topics=results)


async def _create(
    context: Context, topic: CreatableTopic, validate_only: bool
) -> CreatableTopicResult:
    if not (
        context.allowed_to(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        or context.allowed(topic.name)
    ):
        raise TopicAuthorizationFailed(f"not allowed to create {topic.name}")
    overrides = {entry.name: entry.value for entry in topic.configs if entry.value is not None}
    config = context.node.config
    wanted = NewTopic(
        topic.name,
        partitions=_or_default(topic.num_partitions, config.int("num.partitions")),
        replication_factor=_or_default(
            topic.replication_factor, config.int("default.replication.factor")
        ),
        assignment=_assignment(topic),
        configs=overrides,
    )
    created = await context.node.controller.create_topic(wanted, validate_only=validate_only)
    first = created.partitions[0]
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=created.topic_id,
        num_partitions=len(created.partitions),
        replication_factor=len(first.replicas),
        configs=None,
    )
    if context.version >= _TELLS_CONFIGS:
        result.configs = _configs(context, overrides)
    return result


def _or_default(given: int, default: int) -> int:
    return default if given == _BROKER_DEFAULT else given


def _assignment(topic: CreatableTopic) -> dict[int, list[int]] | None:
    if not topic.assignments:
        return None
    if topic.num_partitions != _BROKER_DEFAULT or topic.replication_factor != _BROKER_DEFAULT:
        raise InvalidRequest(
            "give either a replica assignment or a number of partitions and replicas, not both"
        )
    assignment = {each.partition_index: list(each.broker_ids) for each in topic.assignments}
    if sorted(assignment) != list(range(len(topic.assignments))):
        raise InvalidReplicaAssignment(
            f"topic {topic.name}: partitions must be numbered from 0 without a gap"
        )
    return assignment


def _configs(context: Context, overrides: dict[str, str]) -> list[CreatableTopicConfigs]:
    """The new topic's effective configs, so that its creator need not ask (KIP-525)."""
    return [
        CreatableTopicConfigs(
            name=each.key.name,
            value=each.value,
            read_only=False,
            config_source=each.source,
            is_sensitive=each.key.is_sensitive,
        )
        for each in topic_configs(context.node.config, overrides)
    ]
