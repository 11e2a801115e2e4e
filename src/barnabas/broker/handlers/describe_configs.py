"""DescribeConfigs (key 32): list configs with their values, sources and documentation (KIP-226)."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.broker.configs.broker_loggers import effective_levels
from barnabas.broker.configs.config_resource import check_logger_owner
from barnabas.broker.configs.effective_config import (
    Effective,
    Source,
    broker_configs,
    cluster_configs,
    topic_configs,
)
from barnabas.broker.context import Context
from barnabas.broker.outcome import Outcome
from barnabas.broker.runtime.slices import Pace, Slices, run_slices
from barnabas.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    KafkaError,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from barnabas.security.acl import CLUSTER_NAME, Operation, ResourceType
from barnabas.topic_name import check_topic_name

_TOPIC, _BROKER, _BROKER_LOGGER = 2, 4, 8
_TELLS_SOURCE = 1  # earlier versions only report whether the value is the default
_TYPES = {
    "unknown": 0,
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}


def handle(context: Context, request: DescribeConfigsRequest) -> Outcome:
    return run_slices(_answer(context, request))


def _answer(context: Context, request: DescribeConfigsRequest) -> Slices[DescribeConfigsResponse]:
    pace = Pace()
    results = []
    seen: set[tuple[object, ...]] = set()
    for resource in request.resources:
        keys = resource.configuration_keys
        named = (resource.resource_type, resource.resource_name, tuple(keys or ()))
        if named in seen:  # a repeated row of a few bytes would add kilobytes to the response
            if pace.is_over():
                yield
            continue
        seen.add(named)
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            described = _configs(context, request, resource)
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = str(error)
        else:
            wanted = frozenset(resource.configuration_keys or ())  # empty means all keys
            result.configs = [each for each in described if not wanted or each.name in wanted]
        results.append(result)
        if pace.is_over(1 + len(result.configs)):
            yield
    return DescribeConfigsResponse(results=results)


def _configs(
    context: Context, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> Iterable[DescribeConfigsResourceResult]:
    """Return a resource's configs if the client may see them. Raises KafkaErrors."""
    if resource.resource_type != _BROKER_LOGGER:
        effective = _effective(context, resource)
        return (_description(context, request, each) for each in effective)
    _check_may_describe(context)
    check_logger_owner(resource.resource_name, context.node.broker_id)
    return (
        DescribeConfigsResourceResult(
            name=name, value=level, config_source=Source.DYNAMIC_BROKER_LOGGER
        )
        for name, level in effective_levels().items()
    )


def _check_may_describe(context: Context) -> None:
    if not context.allowed_to(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed("not allowed to describe the configs of brokers")


def _description(
    context: Context, request: DescribeConfigsRequest, config: Effective
) -> DescribeConfigsResourceResult:
    result = DescribeConfigsResourceResult(
        name=config.key.name,
        value=config.value,
        read_only=config.is_read_only,
        config_source=config.source,
        is_default=context.version < _TELLS_SOURCE and config.source is Source.DEFAULT,
        is_sensitive=config.key.is_sensitive,
        config_type=_TYPES[config.key.type],
        documentation=config.key.doc if request.include_documentation else None,
    )
    if request.include_synonyms:
        result.synonyms = [
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in config.synonyms
        ]
    return result


def _effective(context: Context, resource: DescribeConfigsResource) -> list[Effective]:
    """Return the configs of a topic, of this broker, or of all brokers.

    Raises KafkaErrors.
    """
    node, name = context.node, resource.resource_name
    if resource.resource_type == _TOPIC:
        if not context.is_allowed(name):
            raise TopicAuthorizationFailed(f"not allowed to describe the configs of {name}")
        # Check the name before the lookup, so that an invalid one gets INVALID_TOPIC_EXCEPTION as
        # in Kafka.
        check_topic_name(name)
        topic = node.image.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"topic {name} does not exist")
        return topic_configs(node.config, topic.config)
    if resource.resource_type != _BROKER:
        raise InvalidRequest(
            f"resource type {resource.resource_type} has no configs; use 2 (topic), 4 (broker) or "
            "8 (broker loggers)"
        )
    _check_may_describe(context)
    # The empty name stands for the defaults of all brokers (KIP-226).
    if not name:
        return cluster_configs(node.config)
    # The properties file of a broker can be read only by that broker.
    if name != str(node.broker_id):
        raise InvalidRequest(
            f"this is broker {node.broker_id}: send the request to broker {name!r}, or omit the "
            "broker id to describe the configs of all brokers"
        )
    return broker_configs(node.config)
