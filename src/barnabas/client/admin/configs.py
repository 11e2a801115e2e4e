"""Implements the part of `Admin` that reads and changes the configs of topics and brokers.

A request about a broker is sent to that broker, because only that broker can read its properties
file. Other requests may be sent to any broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from barnabas.client.channel import BrokerAddress
from barnabas.client.cluster import Cluster
from barnabas.client.errors import check
from barnabas.errors import BrokerNotAvailable
from barnabas.protocol.api import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, Api
from barnabas.protocol.codec import Message
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
"""The types of config resource."""

DYNAMIC_TOPIC_CONFIG: Final = 1
DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5
DYNAMIC_BROKER_LOGGER_CONFIG: Final = 6
"""The possible sources of a config's value.

A value may be set for a topic, for a broker, for all brokers, or in a broker's properties file.
The other sources are Kafka's defaults and the levels of loggers.
"""

CONFIG_TYPES: Final = (
    "unknown",
    "boolean",
    "string",
    "int",
    "short",
    "long",
    "double",
    "list",
    "class",
    "password",
)
"""The name of each config type, by its code."""

_TOPICS_PER_REQUEST = 200

M = TypeVar("M", bound=Message)


class ConfigResource(NamedTuple):
    """A resource that has configs: a topic, a broker, or the loggers of a broker."""

    type: int  # TOPIC, BROKER or BROKER_LOGGER
    name: str  # the topic, the broker's id, or "" for the defaults of all brokers


class ConfigOperationType(IntEnum):
    """How a ConfigOperation changes its config."""

    SET = 0
    DELETE = 1  # restores the default
    APPEND = 2  # adds items to a list
    SUBTRACT = 3  # removes items from a list


class ConfigOperation(NamedTuple):
    """A change to one config. `value` is None for DELETE; list items are separated by commas."""

    name: str
    op: ConfigOperationType = ConfigOperationType.SET
    value: str | None = None


class ConfigSynonym(NamedTuple):
    """A place where a config is set. In a list of synonyms, the first one takes effect."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """A config of a resource, with the source of its value."""

    name: str
    value: str | None  # None if sensitive
    source: int  # DYNAMIC_TOPIC_CONFIG ... DEFAULT_CONFIG
    is_sensitive: bool
    is_read_only: bool
    type: str  # one of CONFIG_TYPES
    synonyms: tuple[ConfigSynonym, ...]  # strongest first; empty unless requested
    documentation: str | None  # None unless requested


class Configs:
    """Describes and alters configs through a client's connections."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(
        self,
        resources: Sequence[ConfigResource],
        names: Sequence[str] | None,
        include_synonyms: bool,
        include_documentation: bool,
    ) -> dict[ConfigResource, list[ConfigEntry]]:
        """Return the configs of each resource. Resources that any broker knows share requests."""
        found: dict[ConfigResource, list[ConfigEntry]] = {}
        for some in _requests(resources):
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=each.type,
                        resource_name=each.name,
                        configuration_keys=None if names is None else list(names),
                    )
                    for each in some
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
            answer = await self._ask(some[0], DESCRIBE_CONFIGS, request, DescribeConfigsResponse)
            for result in answer.results:
                resource = ConfigResource(result.resource_type, result.resource_name)
                check(result.error_code, _subject(resource), result.error_message)
                found[resource] = [_entry(config) for config in result.configs]
        return {each: found[each] for each in resources}

    async def alter(
        self, resource: ConfigResource, operations: Sequence[ConfigOperation], validate_only: bool
    ) -> None:
        request = IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        IncrementalAlterableConfig(name=name, config_operation=op, value=value)
                        for name, op, value in operations
                    ],
                )
            ],
            validate_only=validate_only,
        )
        answer = await self._ask(
            resource, INCREMENTAL_ALTER_CONFIGS, request, IncrementalAlterConfigsResponse
        )
        (result,) = answer.responses
        check(result.error_code, _subject(resource), result.error_message)

    async def _ask(
        self, resource: ConfigResource, api: Api, request: Message, answer: type[M]
    ) -> M:
        async def attempt() -> M:
            node = self._node_of(resource)
            if node is None:
                return await self._cluster.call_any(api, request, answer)
            return await self._cluster.call(node, api, request, answer)

        return await self._cluster.persist(attempt, self._cluster.config.default_api_timeout_ms)

    def _node_of(self, resource: ConfigResource) -> BrokerAddress | None:
        """Return the broker that must answer the request, or None if any broker can."""
        if resource.type == TOPIC or (resource.type == BROKER and not resource.name):
            return None
        # Reject an invalid broker id, because any other broker would answer about itself.
        node = None
        if resource.name.isascii() and resource.name.isdigit():
            node = self._cluster.metadata.view.nodes.get(int(resource.name))
        if node is None:
            raise BrokerNotAvailable(f"no broker {resource.name!r} is known to be alive")
        return node


def _requests(resources: Sequence[ConfigResource]) -> Iterator[Sequence[ConfigResource]]:
    """Yield the resources of each request: many topics, or a single other resource."""
    unique = list(dict.fromkeys(resources))
    # No other broker can report the configs of a broker.
    yield from ([each] for each in unique if each.type != TOPIC)
    topics = [each for each in unique if each.type == TOPIC]
    # A request that is too large would exceed its timeout.
    for start in range(0, len(topics), _TOPICS_PER_REQUEST):
        yield topics[start : start + _TOPICS_PER_REQUEST]


def _subject(resource: ConfigResource) -> str:
    kinds = {TOPIC: "topic", BROKER: "broker", BROKER_LOGGER: "the loggers of broker"}
    if resource.type == BROKER and not resource.name:
        return "configs of all brokers"
    return f"configs of {kinds.get(resource.type, 'resource')} {resource.name!r}"


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    # A newer broker may return a config type that is not in the list.
    known = 0 <= config.config_type < len(CONFIG_TYPES)
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=config.config_source,
        is_sensitive=config.is_sensitive,
        is_read_only=config.read_only,
        type=CONFIG_TYPES[config.config_type if known else 0],
        synonyms=tuple(
            ConfigSynonym(each.name, each.value, each.source) for each in config.synonyms
        ),
        documentation=config.documentation,
    )
