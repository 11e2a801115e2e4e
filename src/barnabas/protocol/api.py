"""Defines the table of APIs.

For each API, the table contains the key, the name, the versions that are implemented and
advertised, and what a broker needs to know about a request before it decodes it.

The name of an API's files is the same everywhere: `protocol/messages/<stem>.py` contains its
messages, and `broker/handlers/<stem>.py` contains its handler. The version ranges are those that
Kafka 3.9.1 with ZooKeeper advertises to clients.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

from barnabas.protocol.message import Message
from barnabas.protocol.wire import ANY_ENTRIES

NEVER: Final = 1_000

_FEW: Final = 1_000
"""The limit for lists that usually have only a few entries."""


class Api:
    """A row of the table. The module with the messages is imported on first use."""

    __slots__ = (
        "_request",
        "_response",
        "flexible_from",
        "is_cached",
        "keeps_buffer",
        "key",
        "max_entries",
        "max_version",
        "min_version",
        "name",
        "oldest_served",
        "overlaps",
        "stem",
    )

    def __init__(  # noqa: PLR0913  (the columns of the table)
        self,
        key: int,
        name: str,
        versions: tuple[int, int],
        flexible_from: int,
        *,
        keeps_buffer: bool = False,
        overlaps: bool = False,
        is_cached: bool = False,
        max_entries: int = ANY_ENTRIES,
        oldest_served: int = 0,
    ) -> None:
        self.key = key
        self.name = name
        self.stem = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
        self.min_version, self.max_version = versions
        self.flexible_from = flexible_from
        """The first version with compact lengths and tagged fields (KIP-482), or NEVER."""
        self.keeps_buffer = keeps_buffer
        """True if the records in a request are used in the receive buffer, without copying them.

        All other requests are copied, because any part of a request that is kept, such as a
        member's subscription, would keep the whole buffer in memory.
        """
        self.overlaps = overlaps
        """True if a request may run at the same time as earlier requests that also have this flag.

        Any other request waits until all earlier requests have been answered, and all later
        requests wait for it, as in Kafka, which handles the requests of a connection one at a time.
        The APIs with this flag append in order, and overlap only while they are waiting for
        replicas.
        """
        self.is_cached = is_cached
        """True if encoded responses are cached, to be sent again for identical requests."""
        self.max_entries = max_entries
        """The maximum number of entries in all lists of a request together.

        It is less than the broker's limit (`barnabas.request.max.entries`) if the lists are
        processed without a pause or if their entries are compared in pairs.
        """
        self.oldest_served = oldest_served
        """The lowest version that is served.

        Lower versions may be advertised, but if a request has such a version, the connection is
        closed.
        """
        self._request: type[Message] | None = None
        self._response: type[Message] | None = None

    @property
    def request(self) -> type[Message]:
        return self._request or self._load()[0]

    @property
    def response(self) -> type[Message]:
        return self._response or self._load()[1]

    def _load(self) -> tuple[type[Message], type[Message]]:
        module = import_module(f"barnabas.protocol.messages.{self.stem}")
        self._request = request = getattr(module, f"{self.name}Request")
        self._response = response = getattr(module, f"{self.name}Response")
        return request, response

    def __repr__(self) -> str:
        return f"Api({self.key} {self.name} {self.min_version}-{self.max_version})"


# Produce versions below 3 would need message formats 0 and 1, which are not accepted any more. They
# are still advertised, because librdkafka before 2.11.1 concludes from a minimum above 0 that gzip
# is not supported (KAFKA-18659). Fetch versions below 4 return UNSUPPORTED_VERSION as well.
PRODUCE: Final = Api(
    0,
    "Produce",
    (0, 11),
    9,
    keeps_buffer=True,
    overlaps=True,
    max_entries=8_000,  # up to 4,000 partitions, each in a different topic
    oldest_served=3,
)
FETCH: Final = Api(1, "Fetch", (0, 17), 12)
LIST_OFFSETS: Final = Api(2, "ListOffsets", (0, 9), 6)
METADATA: Final = Api(3, "Metadata", (0, 12), 9, is_cached=True)
# As in Kafka, the controller describes all partitions in a single request.
LEADER_AND_ISR: Final = Api(4, "LeaderAndIsr", (0, 7), 4)
STOP_REPLICA: Final = Api(5, "StopReplica", (0, 4), 2)
UPDATE_METADATA: Final = Api(6, "UpdateMetadata", (0, 8), 6)
CONTROLLED_SHUTDOWN: Final = Api(7, "ControlledShutdown", (0, 3), 3)
OFFSET_COMMIT: Final = Api(8, "OffsetCommit", (0, 9), 8, overlaps=True)
OFFSET_FETCH: Final = Api(9, "OffsetFetch", (0, 9), 6)
FIND_COORDINATOR: Final = Api(10, "FindCoordinator", (0, 6), 3)
JOIN_GROUP: Final = Api(11, "JoinGroup", (0, 9), 6, max_entries=_FEW)
HEARTBEAT: Final = Api(12, "Heartbeat", (0, 4), 4)
LEAVE_GROUP: Final = Api(13, "LeaveGroup", (0, 5), 4)
SYNC_GROUP: Final = Api(14, "SyncGroup", (0, 5), 4, max_entries=10 * _FEW)
DESCRIBE_GROUPS: Final = Api(15, "DescribeGroups", (0, 5), 5)
LIST_GROUPS: Final = Api(16, "ListGroups", (0, 5), 3, max_entries=100)  # the types of groups
SASL_HANDSHAKE: Final = Api(17, "SaslHandshake", (0, 1), NEVER)
API_VERSIONS: Final = Api(18, "ApiVersions", (0, 4), 3)
CREATE_TOPICS: Final = Api(19, "CreateTopics", (0, 7), 5, max_entries=50 * _FEW)
DELETE_TOPICS: Final = Api(20, "DeleteTopics", (0, 6), 4)
DELETE_RECORDS: Final = Api(21, "DeleteRecords", (0, 2), 2)
INIT_PRODUCER_ID: Final = Api(22, "InitProducerId", (0, 5), 2)
OFFSET_FOR_LEADER_EPOCH: Final = Api(23, "OffsetForLeaderEpoch", (0, 4), 4)
ADD_PARTITIONS_TO_TXN: Final = Api(24, "AddPartitionsToTxn", (0, 5), 3)
ADD_OFFSETS_TO_TXN: Final = Api(25, "AddOffsetsToTxn", (0, 4), 3)
END_TXN: Final = Api(26, "EndTxn", (0, 4), 3)
WRITE_TXN_MARKERS: Final = Api(27, "WriteTxnMarkers", (0, 1), 1)
TXN_OFFSET_COMMIT: Final = Api(28, "TxnOffsetCommit", (0, 4), 3)
DESCRIBE_ACLS: Final = Api(29, "DescribeAcls", (0, 3), 2)
CREATE_ACLS: Final = Api(30, "CreateAcls", (0, 3), 2)
DELETE_ACLS: Final = Api(31, "DeleteAcls", (0, 3), 2)
DESCRIBE_CONFIGS: Final = Api(32, "DescribeConfigs", (0, 4), 4)
ALTER_CONFIGS: Final = Api(33, "AlterConfigs", (0, 2), 2)
ALTER_REPLICA_LOG_DIRS: Final = Api(34, "AlterReplicaLogDirs", (0, 2), 2)
DESCRIBE_LOG_DIRS: Final = Api(35, "DescribeLogDirs", (0, 4), 2)
SASL_AUTHENTICATE: Final = Api(36, "SaslAuthenticate", (0, 2), 2)
CREATE_PARTITIONS: Final = Api(37, "CreatePartitions", (0, 3), 2)
CREATE_DELEGATION_TOKEN: Final = Api(38, "CreateDelegationToken", (0, 3), 2, max_entries=_FEW)
RENEW_DELEGATION_TOKEN: Final = Api(39, "RenewDelegationToken", (0, 2), 2)
EXPIRE_DELEGATION_TOKEN: Final = Api(40, "ExpireDelegationToken", (0, 2), 2)
DESCRIBE_DELEGATION_TOKEN: Final = Api(41, "DescribeDelegationToken", (0, 3), 2, max_entries=_FEW)
DELETE_GROUPS: Final = Api(42, "DeleteGroups", (0, 2), 2)
ELECT_LEADERS: Final = Api(43, "ElectLeaders", (0, 2), 2)
INCREMENTAL_ALTER_CONFIGS: Final = Api(44, "IncrementalAlterConfigs", (0, 1), 1)
ALTER_PARTITION_REASSIGNMENTS: Final = Api(45, "AlterPartitionReassignments", (0, 0), 0)
LIST_PARTITION_REASSIGNMENTS: Final = Api(46, "ListPartitionReassignments", (0, 0), 0)
OFFSET_DELETE: Final = Api(47, "OffsetDelete", (0, 0), NEVER)
DESCRIBE_CLIENT_QUOTAS: Final = Api(48, "DescribeClientQuotas", (0, 1), 1, max_entries=_FEW)
ALTER_CLIENT_QUOTAS: Final = Api(49, "AlterClientQuotas", (0, 1), 1, max_entries=10 * _FEW)
DESCRIBE_USER_SCRAM_CREDENTIALS: Final = Api(
    50, "DescribeUserScramCredentials", (0, 0), 0, max_entries=2 * _FEW
)
ALTER_USER_SCRAM_CREDENTIALS: Final = Api(
    51, "AlterUserScramCredentials", (0, 0), 0, max_entries=_FEW
)
ALTER_PARTITION: Final = Api(56, "AlterPartition", (0, 3), 0)
DESCRIBE_CLUSTER: Final = Api(60, "DescribeCluster", (0, 1), 0)
DESCRIBE_PRODUCERS: Final = Api(61, "DescribeProducers", (0, 0), 0)
DESCRIBE_TRANSACTIONS: Final = Api(65, "DescribeTransactions", (0, 0), 0)
LIST_TRANSACTIONS: Final = Api(66, "ListTransactions", (0, 1), 0, max_entries=_FEW)
ALLOCATE_PRODUCER_IDS: Final = Api(67, "AllocateProducerIds", (0, 0), 0)

APIS: Final[Mapping[int, Api]] = MappingProxyType(
    {
        api.key: api
        for api in (
            PRODUCE,
            FETCH,
            LIST_OFFSETS,
            METADATA,
            LEADER_AND_ISR,
            STOP_REPLICA,
            UPDATE_METADATA,
            CONTROLLED_SHUTDOWN,
            OFFSET_COMMIT,
            OFFSET_FETCH,
            FIND_COORDINATOR,
            JOIN_GROUP,
            HEARTBEAT,
            LEAVE_GROUP,
            SYNC_GROUP,
            DESCRIBE_GROUPS,
            LIST_GROUPS,
            SASL_HANDSHAKE,
            API_VERSIONS,
            CREATE_TOPICS,
            DELETE_TOPICS,
            DELETE_RECORDS,
            INIT_PRODUCER_ID,
            OFFSET_FOR_LEADER_EPOCH,
            ADD_PARTITIONS_TO_TXN,
            ADD_OFFSETS_TO_TXN,
            END_TXN,
            WRITE_TXN_MARKERS,
            TXN_OFFSET_COMMIT,
            DESCRIBE_ACLS,
            CREATE_ACLS,
            DELETE_ACLS,
            DESCRIBE_CONFIGS,
            ALTER_CONFIGS,
            ALTER_REPLICA_LOG_DIRS,
            DESCRIBE_LOG_DIRS,
            SASL_AUTHENTICATE,
            CREATE_PARTITIONS,
            CREATE_DELEGATION_TOKEN,
            RENEW_DELEGATION_TOKEN,
            EXPIRE_DELEGATION_TOKEN,
            DESCRIBE_DELEGATION_TOKEN,
            DELETE_GROUPS,
            ELECT_LEADERS,
            INCREMENTAL_ALTER_CONFIGS,
            ALTER_PARTITION_REASSIGNMENTS,
            LIST_PARTITION_REASSIGNMENTS,
            OFFSET_DELETE,
            DESCRIBE_CLIENT_QUOTAS,
            ALTER_CLIENT_QUOTAS,
            DESCRIBE_USER_SCRAM_CREDENTIALS,
            ALTER_USER_SCRAM_CREDENTIALS,
            ALTER_PARTITION,
            DESCRIBE_CLUSTER,
            DESCRIBE_PRODUCERS,
            DESCRIBE_TRANSACTIONS,
            LIST_TRANSACTIONS,
            ALLOCATE_PRODUCER_IDS,
        )
    }
)
