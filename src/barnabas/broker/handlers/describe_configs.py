"""DescribeConfigs (key 32): every config with its value, its source and a sentence (KIP-226)."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.effective_config import Effective, Source, broker_configs, topic_configs
from barnabas.errors import (
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
)

_TOPIC, _BROKER = 2, 4
_TELLS_SOURCE = 1  # before, only whether it is the default
_TYPES = {
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


def handle(context: Context, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    results = []
    for resource in request.resources:
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name
        )
        try:
            result.configs = _describe(context, request, resource)
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = str(error)
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _describe(
    context: Context, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> list[DescribeConfigsResourceResult]:
    wanted = resource.configuration_keys
    return [
        DescribeConfigsResourceResult(
            name=each.key.name,
            value=each.value,
            read_only=resource.resource_type != _TOPIC,
            config_source=each.source,
            is_default=context.version < _TELLS_SOURCE and each.source is Source.DEFAULT,
            is_sensitive=each.key.is_sensitive,
            synonyms=[],
            config_type=_TYPES[each.key.type],
            documentation=each.key.doc if request.include_documentation else None,
        )
        for each in _effective(context, resource)
        if wanted is None or each.key.name in wanted
    ]


def _effective(context: Context, resource: DescribeConfigsResource) -> list[Effective]:
    """The configs of a topic or of this broker; a KafkaError where there are none to tell."""
    node, name = context.node, resource.resource_name
    if resource.resource_type == _TOPIC:
        if not context.allowed(name):
            raise TopicAuthorizationFailed(f"not allowed to describe the configs of {name}")
        topic = node.image.topics.get(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"topic {name} does not exist")
        return topic_configs(node.config, topic.config)
    if resource.resource_type == _BROKER:
        if name not in ("", str(node.broker_id)):
            raise InvalidRequest(f"this is broker {node.broker_id}: ask broker {name!r} itself")
        return broker_configs(node.config)
    raise InvalidRequest(f"resource type {resource.resource_type} has no configs here")
