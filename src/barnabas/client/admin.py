"""Topics and configs, asked of the cluster or changed in it.

    async with Admin("localhost:9092") as admin:
        await admin.create_topics([NewTopic("test", num_partitions=3)])

Changes go to the controller. A change whose answer was lost is asked for again, so that a topic
which the first attempt created may be reported as TopicAlreadyExists.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Unpack

from barnabas.client.channel import Node, Seams, system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig, ClientOptions, configure
from barnabas.client.errors import check
from barnabas.client.view import ClusterView, PartitionView
from barnabas.errors import NotController
from barnabas.protocol.api import (
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    METADATA,
)
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

TOPIC, BROKER = 2, 4
"""Types of config resources."""

DYNAMIC_TOPIC_CONFIG, DEFAULT_CONFIG = 1, 5
"""Sources of a config's value: set for the topic, and Kafka's own default."""


_DELETE_BY_NAME = 5  # the last version of DeleteTopics that only knows names


class NewTopic(NamedTuple):
    name: str
    num_partitions: int = -1  # -1: the broker's num.partitions
    replication_factor: int = -1  # -1: the broker's default.replication.factor
    configs: Mapping[str, str] = {}
    assignment: Mapping[int, Sequence[int]] | None = None  # partition -> brokers, leader first


class TopicDescription(NamedTuple):
    name: str
    topic_id: bytes  # 16 bytes
    is_internal: bool
    partitions: tuple[PartitionView, ...]  # ascending


class ConfigResource(NamedTuple):
    type: int  # TOPIC or BROKER
    name: str  # the topic, or the broker's id


class ConfigEntry(NamedTuple):
    name: str
    value: str | None  # None if sensitive
    source: int  # DYNAMIC_TOPIC_CONFIG ... DEFAULT_CONFIG
    is_sensitive: bool
    is_read_only: bool
    documentation: str | None


class BrokerDescription(NamedTuple):
    broker_id: int
    host: str
    port: int
    rack: str | None


class ClusterDescription(NamedTuple):
    cluster_id: str
    controller_id: int
    brokers: tuple[BrokerDescription, ...]


class Admin:
    """Options are those of every client (see `ClientOptions`)."""

    def __init__(
        self,
        bootstrap_servers: str | Sequence[str],
        *,
        seams: Seams | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        self._config, _ = configure(ClientConfig, options)
        self._cluster = Cluster(bootstrap_servers, self._config, seams or system_seams())

    async def start(self) -> None:
        """Connect. Raises NoBrokersAvailable."""
        await self._cluster.start()

    async def close(self) -> None:
        await self._cluster.close()

    async def __aenter__(self) -> Admin:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # ---- topics ----

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> None:
        """Create topics, or only check whether they could be.

        Raises the first KafkaError (TopicAlreadyExists, InvalidPartitions ...); the other topics of
        the call are created all the same.
        """
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in topics],
            timeout_ms=self._config.request_timeout_ms,
            validate_only=validate_only,
        )

        async def attempt() -> CreateTopicsResponse:
            answer = await self._cluster.call_controller(
                CREATE_TOPICS, request, CreateTopicsResponse
            )
            _refuse_wrong_controller(topic.error_code for topic in answer.topics)
            return answer

        answer = await self._cluster.persist(attempt, self._config.default_api_timeout_ms)
        for topic in answer.topics:
            check(topic.error_code, f"topic {topic.name!r}", topic.error_message)

    async def delete_topics(self, names: Sequence[str]) -> None:
        """Delete topics with all their records. Raises the first KafkaError, as `create_topics`."""
        request = DeleteTopicsRequest(
            topic_names=list(names), timeout_ms=self._config.request_timeout_ms
        )

        async def attempt() -> DeleteTopicsResponse:
            answer = await self._cluster.call_controller(
                DELETE_TOPICS, request, DeleteTopicsResponse, at_most=_DELETE_BY_NAME
            )
            _refuse_wrong_controller(topic.error_code for topic in answer.responses)
            return answer

        answer = await self._cluster.persist(attempt, self._config.default_api_timeout_ms)
        for topic in answer.responses:
            check(topic.error_code, f"topic {topic.name!r}", topic.error_message)

    async def list_topics(self, *, include_internal: bool = True) -> list[str]:
        """The names of all topics, sorted."""
        return [
            topic.name
            for topic in await self.describe_topics()
            if include_internal or not topic.is_internal
        ]

    async def describe_topics(self, names: Sequence[str] | None = None) -> list[TopicDescription]:
        """Partitions, leaders, replicas and ISR of these topics (of all), sorted by name.

        Raises the KafkaError of the first topic that has one, as UnknownTopicOrPartition.
        """
        asked = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)

        async def attempt() -> ClusterView:
            answer = await self._cluster.call_any(METADATA, request, MetadataResponse)
            return ClusterView().updated(answer)

        view = await self._cluster.persist(attempt, self._config.default_api_timeout_ms)
        for name in names or ():
            error = view.topic_error(name)
            if error is not None:
                raise error
        return [
            TopicDescription(
                topic.name, topic.topic_id, topic.is_internal, tuple(topic.partitions.values())
            )
            for _, topic in sorted(view.topics.items())
        ]

    # ---- configs ----

    async def describe_configs(
        self, resources: Sequence[ConfigResource], *, documentation: bool = False
    ) -> dict[ConfigResource, list[ConfigEntry]]:
        """Every config of each resource, in the broker's order. Raises the first KafkaError."""
        described: dict[ConfigResource, list[ConfigEntry]] = {}
        for resource in resources:
            node: Node | None = None
            if resource.type == BROKER:
                # Only the broker itself knows what its properties file said.
                node = self._cluster.metadata.view.nodes.get(int(resource.name))
            described[resource] = await self._describe(resource, node, documentation)
        return described

    async def _describe(
        self, resource: ConfigResource, node: Node | None, documentation: bool
    ) -> list[ConfigEntry]:
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configuration_keys=None,
                )
            ],
            include_documentation=documentation,
        )

        async def attempt() -> DescribeConfigsResponse:
            if node is None:
                return await self._cluster.call_any(
                    DESCRIBE_CONFIGS, request, DescribeConfigsResponse
                )
            return await self._cluster.call(
                node, DESCRIBE_CONFIGS, request, DescribeConfigsResponse
            )

        answer = await self._cluster.persist(attempt, self._config.default_api_timeout_ms)
        (result,) = answer.results
        check(result.error_code, f"configs of {resource.name!r}", result.error_message)
        return [
            ConfigEntry(
                name=config.name,
                value=config.value,
                source=config.config_source,
                is_sensitive=config.is_sensitive,
                is_read_only=config.read_only,
                documentation=config.documentation,
            )
            for config in result.configs
        ]

    # ---- cluster ----

    async def describe_cluster(self) -> ClusterDescription:
        """The cluster's id, its controller, and the brokers that are alive."""

        async def attempt() -> DescribeClusterResponse:
            answer = await self._cluster.call_any(
                DESCRIBE_CLUSTER, DescribeClusterRequest(), DescribeClusterResponse
            )
            check(answer.error_code, "describing the cluster", answer.error_message)
            return answer

        answer = await self._cluster.persist(attempt, self._config.default_api_timeout_ms)
        brokers = sorted(answer.brokers, key=lambda broker: broker.broker_id)
        return ClusterDescription(
            answer.cluster_id,
            answer.controller_id,
            tuple(
                BrokerDescription(broker.broker_id, broker.host, broker.port, broker.rack)
                for broker in brokers
            ),
        )


def _refuse_wrong_controller(codes: Iterable[int]) -> None:
    """Only this is asked again elsewhere; what the controller itself says holds."""
    for code in codes:
        if code == NotController.code:
            raise NotController


def _creatable(topic: NewTopic) -> CreatableTopic:
    """An explicit assignment goes with -1 for both counts: the broker takes them from it."""
    assignments = [
        CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
        for partition, brokers in (topic.assignment or {}).items()
    ]
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assignments else topic.num_partitions,
        replication_factor=-1 if assignments else topic.replication_factor,
        assignments=assignments,
        configs=[
            CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
        ],
    )
