"""Provides the admin client, which reads and changes topics, partitions, groups and more.

    async with Admin("localhost:9092") as admin:
        await admin.create_topics([NewTopic("test", num_partitions=3)])

Changes are sent to the controller. A change is retried if its response is lost, so
TopicAlreadyExists may mean that an earlier attempt created the topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import NamedTuple, Unpack, overload

from barnabas.client import arguments
from barnabas.client.admin import admin_arguments
from barnabas.client.admin.acl_admin import AclAdmin
from barnabas.client.admin.admin_arguments import ConfigOperations, ConfigText, Names
from barnabas.client.admin.configs import (
    BROKER,
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    STATIC_BROKER_CONFIG,
    TOPIC,
    ConfigEntry,
    ConfigOperation,
    ConfigOperationType,
    ConfigResource,
    Configs,
    ConfigSynonym,
)
from barnabas.client.admin.event_admin import EventAdmin
from barnabas.client.admin.group_admin import GroupAdmin
from barnabas.client.admin.partition_admin import PartitionAdmin, refuse_wrong_controller
from barnabas.client.admin.quota_admin import QuotaAdmin
from barnabas.client.admin.replica_admin import LogDirDescription, ReplicaAdmin, ReplicaSize
from barnabas.client.admin.scram_admin import ScramAdmin
from barnabas.client.admin.token_admin import TokenAdmin
from barnabas.client.admin.transaction_admin import TransactionAdmin
from barnabas.client.channel import Seams, system_seams
from barnabas.client.cluster import Cluster
from barnabas.client.config import ClientConfig, ClientOptions, Servers, configure, split
from barnabas.client.coordinator import GROUP, TRANSACTION, CoordinatorFinder
from barnabas.client.errors import ConnectionLost, check
from barnabas.client.offsets import (
    READ_COMMITTED,
    READ_UNCOMMITTED,
    OffsetAndTimestamp,
    OffsetFinder,
)
from barnabas.client.view import ClusterView, PartitionView
from barnabas.errors import UnsupportedVersion
from barnabas.protocol.api import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    METADATA,
)
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.types import TopicPartition

__all__ = [
    "BROKER",
    "DEFAULT_CONFIG",
    "DYNAMIC_BROKER_CONFIG",
    "DYNAMIC_DEFAULT_BROKER_CONFIG",
    "DYNAMIC_TOPIC_CONFIG",
    "STATIC_BROKER_CONFIG",
    "TOPIC",
    "Admin",
    "BrokerDescription",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigOperationType",
    "ConfigResource",
    "ConfigSynonym",
    "LogDirDescription",
    "NewTopic",
    "ReplicaSize",
    "TopicDescription",
]

_LEAST_TIMESTAMP = -5  # the special timestamps are negative
_DELETE_BY_NAME = 5  # the last DeleteTopics version that identifies topics only by name


class NewTopic(NamedTuple):
    """A topic to create."""

    name: str
    num_partitions: int = -1  # -1: the broker's num.partitions
    replication_factor: int = -1  # -1: the broker's default.replication.factor
    configs: Mapping[str, ConfigText] = {}
    assignment: Mapping[int, Sequence[int]] | None = None  # partition -> brokers, leader first


class TopicDescription(NamedTuple):
    """A topic and its partitions, as the brokers report them."""

    name: str
    topic_id: bytes  # 16 bytes
    is_internal: bool
    partitions: tuple[PartitionView, ...]  # ascending


class BrokerDescription(NamedTuple):
    """A live broker, with the address that clients use to connect to it."""

    broker_id: int
    host: str
    port: int
    rack: str | None


class ClusterDescription(NamedTuple):
    """A cluster's id, its controller and its live brokers."""

    cluster_id: str
    controller_id: int
    brokers: tuple[BrokerDescription, ...]
    left_out: tuple[str, ...] = ()  # one line about each broker that the controller cannot use


class Admin(
    AclAdmin,
    EventAdmin,
    GroupAdmin,
    PartitionAdmin,
    QuotaAdmin,
    ReplicaAdmin,
    ScramAdmin,
    TokenAdmin,
    TransactionAdmin,
):
    """Reads and changes topics, partitions, configs, groups, transactions and credentials.

    Accepts the options that all clients have in common (see `ClientOptions`). A method that takes
    several names or partitions also accepts a single name or partition. Every method raises
    TypeError or ValueError if an argument is invalid, Unreachable if no response arrives within
    `default.api.timeout.ms`, and any KafkaError that the broker returns, such as
    ClusterAuthorizationFailed; each method lists only its most likely errors. Transient errors are
    retried for `default.api.timeout.ms`.

        async with Admin("localhost:9092") as admin:
            await admin.create_topics([NewTopic("test", num_partitions=3), "other"])
            print(await admin.list_topics())
    """

    def __init__(
        self,
        bootstrap_servers: Servers = None,
        *,
        seams: Seams | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        servers, given = split(bootstrap_servers, options)
        self._config, _ = configure(ClientConfig, given)
        self._cluster = Cluster(servers, self._config, seams or system_seams())
        self._configs = Configs(self._cluster)
        self._groups = CoordinatorFinder(self._cluster, GROUP)
        self._transactions = CoordinatorFinder(self._cluster, TRANSACTION)

    async def start(self) -> None:
        """Connect. Raises NoBrokersAvailable."""
        await self._cluster.start()

    async def close(self) -> None:
        """Disconnect. Closing a closed client does nothing."""
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
        self, topics: NewTopic | str | Iterable[NewTopic | str], *, validate_only: bool = False
    ) -> None:
        """Create topics, or only validate them. A topic given by name gets the broker's defaults.

        Raises the first KafkaError (TopicAlreadyExists, InvalidTopic, InvalidPartitions,
        InvalidReplicationFactor, InvalidReplicaAssignment, InvalidConfig, PolicyViolation); the
        other topics in the call are still created.

            await admin.create_topics(NewTopic("test", 3, configs={"retention.ms": 3_600_000}))
        """
        request = CreateTopicsRequest(
            topics=[_creatable(topic) for topic in _new_topics(topics)],
            timeout_ms=self._config.request_timeout_ms,
            validate_only=validate_only,
        )

        async def attempt() -> CreateTopicsResponse:
            # A broker that is no longer the controller rejects every topic with NOT_CONTROLLER.
            # Retry only that error, at the controller named in fresh metadata.
            answer = await self._cluster.call_controller(
                CREATE_TOPICS, request, CreateTopicsResponse
            )
            refuse_wrong_controller(topic.error_code for topic in answer.topics)
            return answer

        answer = await self._persist(attempt)
        for topic in answer.topics:
            check(topic.error_code, f"topic {topic.name!r}", topic.error_message)

    async def delete_topics(self, names: Names) -> None:
        """Delete topics with all their records.

        Raises the first KafkaError, such as UnknownTopicOrPartition; the other topics in the call
        are still deleted.
        """
        request = DeleteTopicsRequest(
            topic_names=admin_arguments.names(names, "names"),
            timeout_ms=self._config.request_timeout_ms,
        )

        async def attempt() -> DeleteTopicsResponse:
            answer = await self._cluster.call_controller(
                DELETE_TOPICS, request, DeleteTopicsResponse, at_most=_DELETE_BY_NAME
            )
            refuse_wrong_controller(topic.error_code for topic in answer.responses)
            return answer

        answer = await self._persist(attempt)
        for topic in answer.responses:
            check(topic.error_code, f"topic {topic.name!r}", topic.error_message)

    async def create_partitions(
        self,
        topic: str,
        total_count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Increase a topic's number of partitions to `total_count`, or only validate the increase.

        `assignments` lists the brokers of each new partition, leader first. Adding partitions
        changes the partition that a key maps to. Raises InvalidPartitions, InvalidReplicaAssignment
        or UnknownTopicOrPartition.
        """
        wanted = None
        if assignments is not None:
            wanted = [
                CreatePartitionsAssignment(broker_ids=admin_arguments.brokers(each, "assignments"))
                for each in arguments.several(assignments, "assignments")
            ]
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(
                    name=arguments.text(topic, "topic"),
                    count=admin_arguments.count(total_count, "total_count"),
                    assignments=wanted,
                )
            ],
            timeout_ms=self._config.request_timeout_ms,
            validate_only=validate_only,
        )

        async def attempt() -> CreatePartitionsResponse:
            answer = await self._cluster.call_controller(
                CREATE_PARTITIONS, request, CreatePartitionsResponse
            )
            refuse_wrong_controller(result.error_code for result in answer.results)
            return answer

        answer = await self._persist(attempt)
        for result in answer.results:
            check(result.error_code, f"topic {result.name!r}", result.error_message)

    async def list_topics(self, *, include_internal: bool = True) -> list[str]:
        """Return all topic names, sorted. `include_internal` adds Kafka's internal topics."""
        return [
            topic.name
            for topic in await self.describe_topics()
            if include_internal or not topic.is_internal
        ]

    async def describe_topics(self, names: Names | None = None) -> list[TopicDescription]:
        """Describe the partitions, leaders, replicas and ISRs of these topics (or of all), sorted.

        Raises the first topic's KafkaError, such as UnknownTopicOrPartition. The topic may be new,
        and this broker may not have learned of it yet.

            (topic,) = await admin.describe_topics("test")
            print([(each.partition, each.leader, each.isr) for each in topic.partitions])
        """
        wanted = None if names is None else admin_arguments.names(names, "names")
        topics = None if wanted is None else [MetadataRequestTopic(name=name) for name in wanted]
        request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)

        async def attempt() -> ClusterView:
            # Do not store the result in the client's own view, which is limited to the topics in
            # use.
            answer = await self._cluster.call_any(METADATA, request, MetadataResponse)
            return ClusterView().after(answer)

        view = await self._persist(attempt)
        for name in wanted or ():
            error = view.topic_error(name)
            if error is not None:
                raise error
        return [
            TopicDescription(
                topic.name, topic.topic_id, topic.is_internal, tuple(topic.partitions.values())
            )
            for _, topic in sorted(view.topics.items())
        ]

    # ---- records ----

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        """Return the offset of each partition's first record at or after a timestamp (ms).

        The timestamp may also be LATEST, EARLIEST or MAX_TIMESTAMP from `client.offsets`. With
        `read_committed`, LATEST returns the last stable offset. The offset is -1 if all records are
        older than the timestamp. Raises the first KafkaError.

            partition = TopicPartition("test", 0)
            end = (await admin.list_offsets({partition: LATEST}))[partition].offset
        """
        wanted = admin_arguments.numbers_by_partition(timestamps, "timestamps", _LEAST_TIMESTAMP)
        finder = OffsetFinder(self._cluster, READ_COMMITTED if read_committed else READ_UNCOMMITTED)
        return await finder.find(wanted, self._config.default_api_timeout_ms)

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset in each partition, and return the new start offsets.

        The record at the offset is the first one that is kept; -1 deletes all records. Raises the
        first KafkaError: OffsetOutOfRange, or PolicyViolation if the topic is compacted.

            await admin.delete_records({TopicPartition("test", 0): 1_000})
        """
        offsets = admin_arguments.numbers_by_partition(offsets, "offsets", least=-1)
        # Run the deletions concurrently, because each waits for the followers' next fetches.
        begins = await asyncio.gather(
            *(
                self._persist(partial(self._delete_records, name, offset))
                for name, offset in offsets.items()
            ),
            return_exceptions=True,
        )
        found = {}
        # Gather all results before raising the first error, because the other deletions still take
        # effect.
        for name, begin in zip(offsets, begins, strict=True):
            if isinstance(begin, BaseException):
                raise begin
            found[name] = begin
        return found

    async def _delete_records(self, name: TopicPartition, offset: int) -> int:
        partition = DeleteRecordsPartition(partition_index=name.partition, offset=offset)
        answer = await self._cluster.call(
            await self._leader(name),
            DELETE_RECORDS,
            DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=name.topic, partitions=[partition])],
                timeout_ms=self._config.request_timeout_ms,
            ),
            DeleteRecordsResponse,
        )
        ((result,),) = (topic.partitions for topic in answer.topics)
        check(result.error_code, f"deleting records of {name}")
        return result.low_watermark

    # ---- configs ----

    @overload
    async def describe_configs(
        self,
        resource: ConfigResource,
        names: Names | None = None,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> list[ConfigEntry]: ...

    @overload
    async def describe_configs(
        self,
        resource: list[ConfigResource],
        names: Names | None = None,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> dict[ConfigResource, list[ConfigEntry]]: ...

    async def describe_configs(
        self,
        resource: ConfigResource | list[ConfigResource],
        names: Names | None = None,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> list[ConfigEntry] | dict[ConfigResource, list[ConfigEntry]]:
        """Return the configs of a resource, or of each resource in a list, in the broker's order.

        If `names` is given, only these configs are returned. `include_synonyms` adds every place
        where a value is set, and `include_documentation` adds a description of each config. Raises
        the first KafkaError, such as BrokerNotAvailable if the broker is not alive.

            for entry in await admin.describe_configs(ConfigResource(BROKER, "0")):
                print(entry.name, entry.value)
        """
        wanted = None if names is None else admin_arguments.names(names, "names")
        several = resource if isinstance(resource, list) else [resource]
        described = await self._configs.describe(
            [admin_arguments.resource(each) for each in several],
            wanted,
            include_synonyms,
            include_documentation,
        )
        return described if isinstance(resource, list) else described[resource]

    async def alter_configs(
        self,
        resource: ConfigResource,
        operations: ConfigOperations,
        *,
        validate_only: bool = False,
    ) -> None:
        """Apply operations to the configs of a resource. Either all are applied or none are.

        A mapping sets each name to its value; None restores the default:

            await admin.alter_configs(ConfigResource(TOPIC, "test"), {"retention.ms": 3_600_000})

        Raises InvalidConfig, InvalidRequest (if a config is read-only) or UnknownTopicOrPartition.
        When this method returns, Barnabas brokers have already applied the change; other brokers
        apply it shortly afterwards.
        """
        await self._configs.alter(
            admin_arguments.resource(resource),
            admin_arguments.operations(operations),
            validate_only,
        )

    # ---- cluster ----

    async def describe_cluster(self) -> ClusterDescription:
        """Return the cluster's id, its controller and its live brokers."""

        async def attempt() -> DescribeClusterResponse:
            call = (DESCRIBE_CLUSTER, DescribeClusterRequest(), DescribeClusterResponse)
            try:
                answer = await self._cluster.call_controller(*call)
            except ConnectionLost:  # there is no controller, so ask any broker
                answer = await self._cluster.call_any(*call)
            except UnsupportedVersion:  # before Kafka 2.8 (KIP-700)
                return await self._cluster_by_metadata()
            check(answer.error_code, "describing the cluster", answer.error_message)
            return answer

        answer = await self._persist(attempt)
        brokers = tuple(
            BrokerDescription(each.broker_id, each.host, each.port, each.rack)
            for each in sorted(answer.brokers, key=lambda broker: broker.broker_id)
        )
        # Kafka sets the message only on an error; a Barnabas controller lists unusable brokers in
        # it.
        left_out = tuple((answer.error_message or "").splitlines())
        return ClusterDescription(answer.cluster_id, answer.controller_id, brokers, left_out)

    async def _cluster_by_metadata(self) -> DescribeClusterResponse:
        """Return what Metadata says about the cluster, as Kafka's client does with old brokers."""
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        answer = await self._cluster.call_any(METADATA, request, MetadataResponse)
        return DescribeClusterResponse(
            cluster_id=answer.cluster_id or "",
            controller_id=answer.controller_id,
            brokers=[
                DescribeClusterBroker(
                    broker_id=each.node_id, host=each.host, port=each.port, rack=each.rack
                )
                for each in answer.brokers
            ],
        )


def _new_topics(topics: object) -> list[NewTopic]:
    """Return the topics to create, given one topic or several, each as a NewTopic or a name."""
    given = [topics] if isinstance(topics, NewTopic | str) else arguments.several(topics, "topics")
    return [NewTopic(each) if isinstance(each, str) else _new_topic(each) for each in given]


def _new_topic(topic: object) -> NewTopic:
    if not isinstance(topic, NewTopic):
        kind = type(topic).__name__
        raise TypeError(f"topics: each must be a NewTopic or a name, not {kind}")
    return topic


def _creatable(topic: NewTopic) -> CreatableTopic:
    """Build the topic for the request; if replicas are assigned explicitly, both counts are -1."""
    if topic.assignment is not None and not isinstance(topic.assignment, Mapping):
        kind = type(topic.assignment).__name__
        raise TypeError(f"assignment: must map partitions to lists of brokers, not {kind}")
    assignments = [
        CreatableReplicaAssignment(
            partition_index=arguments.whole_number(partition, "assignment"),
            broker_ids=admin_arguments.brokers(brokers, "assignment"),
        )
        for partition, brokers in (topic.assignment or {}).items()
    ]
    # Kafka rejects counts given together with an assignment, which implies both counts.
    num_partitions = admin_arguments.count(topic.num_partitions, "num_partitions")
    replication_factor = admin_arguments.count(topic.replication_factor, "replication_factor")
    return CreatableTopic(
        name=arguments.text(topic.name, "topics"),
        num_partitions=-1 if assignments else num_partitions,
        replication_factor=-1 if assignments else replication_factor,
        assignments=assignments,
        configs=[
            CreatableTopicConfig(name=name, value=value)
            for name, value in admin_arguments.config_texts(topic.configs, "configs").items()
        ],
    )
