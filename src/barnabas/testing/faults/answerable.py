"""Lists the errors that each API can return in Kafka 3.9's protocol.

A rule with any other error is rejected, because it could only confuse a client. `ROWS` lists the
errors for a row: a topic, partition, group or configured resource. `WHOLE` lists the errors for the
request as a whole, for the APIs whose responses can contain both kinds. An API that is only in
`WHOLE` has no rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ANY: Final = frozenset(
    (
        "UNKNOWN_SERVER_ERROR",
        "REQUEST_TIMED_OUT",
        "INVALID_REQUEST",
        "CLUSTER_AUTHORIZATION_FAILED",
    )
)
"""Errors that every API can return."""

_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION TOPIC_AUTHORIZATION_FAILED INVALID_TOPIC_EXCEPTION"
_REPLICA = (
    f"{_TOPIC} NOT_LEADER_OR_FOLLOWER LEADER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE "
    "KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH"
)
_COORDINATOR = "COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR"
_GROUP = f"{_COORDINATOR} GROUP_AUTHORIZATION_FAILED INVALID_GROUP_ID"
_MEMBER = (
    f"{_GROUP} UNKNOWN_MEMBER_ID ILLEGAL_GENERATION REBALANCE_IN_PROGRESS FENCED_INSTANCE_ID "
    "UNSUPPORTED_VERSION"
)
_PRODUCER = "INVALID_PRODUCER_EPOCH PRODUCER_FENCED INVALID_PRODUCER_ID_MAPPING"
_TRANSACTION = (
    f"{_COORDINATOR} {_PRODUCER} INVALID_TXN_STATE CONCURRENT_TRANSACTIONS TRANSACTION_ABORTABLE "
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
)
_CONTROLLER = "NOT_CONTROLLER THROTTLING_QUOTA_EXCEEDED POLICY_VIOLATION INVALID_CONFIG"
_OFFSETS = f"{_MEMBER} {_TOPIC} OFFSET_METADATA_TOO_LARGE INVALID_COMMIT_OFFSET_SIZE"
_ACLS = "SECURITY_DISABLED"
_TOKEN = (
    "DELEGATION_TOKEN_AUTH_DISABLED DELEGATION_TOKEN_NOT_FOUND DELEGATION_TOKEN_OWNER_MISMATCH "
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED DELEGATION_TOKEN_AUTHORIZATION_FAILED "
    "DELEGATION_TOKEN_EXPIRED INVALID_PRINCIPAL_TYPE"
)
_BROKERS = "STALE_CONTROLLER_EPOCH STALE_BROKER_EPOCH NOT_CONTROLLER BROKER_ID_NOT_REGISTERED"


def _table(rows: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    return MappingProxyType({api: frozenset(errors.split()) for api, errors in rows.items()})


ROWS: Final = _table(
    {
        "Produce": (
            f"{_REPLICA} CORRUPT_MESSAGE MESSAGE_TOO_LARGE RECORD_LIST_TOO_LARGE INVALID_RECORD "
            "NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND INVALID_REQUIRED_ACKS "
            "INVALID_TIMESTAMP UNSUPPORTED_FOR_MESSAGE_FORMAT UNSUPPORTED_COMPRESSION_TYPE "
            "OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID "
            f"INVALID_TXN_STATE TRANSACTIONAL_ID_AUTHORIZATION_FAILED {_PRODUCER} "
            "TRANSACTION_ABORTABLE NOT_COORDINATOR"
        ),
        "Fetch": (
            f"{_REPLICA} OFFSET_OUT_OF_RANGE CORRUPT_MESSAGE UNKNOWN_TOPIC_ID "
            "INCONSISTENT_TOPIC_ID UNSUPPORTED_COMPRESSION_TYPE OFFSET_NOT_AVAILABLE"
        ),
        "ListOffsets": f"{_REPLICA} OFFSET_NOT_AVAILABLE UNSUPPORTED_FOR_MESSAGE_FORMAT",
        "Metadata": f"{_TOPIC} LEADER_NOT_AVAILABLE REPLICA_NOT_AVAILABLE LISTENER_NOT_FOUND "
        "UNKNOWN_TOPIC_ID INVALID_REPLICATION_FACTOR KAFKA_STORAGE_ERROR POLICY_VIOLATION",
        "OffsetForLeaderEpoch": _REPLICA,
        "OffsetCommit": _OFFSETS,
        "TxnOffsetCommit": f"{_OFFSETS} {_TRANSACTION}",
        "OffsetFetch": f"{_TOPIC} UNSTABLE_OFFSET_COMMIT",
        "OffsetDelete": f"{_TOPIC} GROUP_SUBSCRIBED_TO_TOPIC",
        "FindCoordinator": f"{_GROUP} TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
        "LeaveGroup": "UNKNOWN_MEMBER_ID FENCED_INSTANCE_ID",
        "DescribeGroups": f"{_GROUP} GROUP_ID_NOT_FOUND",
        "DeleteGroups": f"{_GROUP} NON_EMPTY_GROUP GROUP_ID_NOT_FOUND",
        "CreateTopics": (
            f"{_CONTROLLER} {_TOPIC} TOPIC_ALREADY_EXISTS INVALID_PARTITIONS "
            "INVALID_REPLICATION_FACTOR INVALID_REPLICA_ASSIGNMENT"
        ),
        "DeleteTopics": f"{_CONTROLLER} {_TOPIC} TOPIC_DELETION_DISABLED UNKNOWN_TOPIC_ID",
        "CreatePartitions": (
            f"{_CONTROLLER} {_TOPIC} INVALID_PARTITIONS INVALID_REPLICA_ASSIGNMENT "
            "REASSIGNMENT_IN_PROGRESS"
        ),
        "DeleteRecords": f"{_REPLICA} OFFSET_OUT_OF_RANGE POLICY_VIOLATION",
        "AddPartitionsToTxn": f"{_TRANSACTION} {_TOPIC} OPERATION_NOT_ATTEMPTED",
        "WriteTxnMarkers": f"{_REPLICA} INVALID_PRODUCER_EPOCH TRANSACTION_COORDINATOR_FENCED",
        "DescribeConfigs": f"{_TOPIC} INVALID_CONFIG",
        "AlterConfigs": f"{_CONTROLLER} {_TOPIC}",
        "IncrementalAlterConfigs": f"{_CONTROLLER} {_TOPIC}",
        "ElectLeaders": (
            f"{_TOPIC} NOT_CONTROLLER PREFERRED_LEADER_NOT_AVAILABLE ELECTION_NOT_NEEDED "
            "ELIGIBLE_LEADERS_NOT_AVAILABLE"
        ),
        "AlterPartitionReassignments": (
            f"{_TOPIC} INVALID_REPLICA_ASSIGNMENT NO_REASSIGNMENT_IN_PROGRESS "
            "INVALID_REPLICATION_FACTOR"
        ),
        "AlterPartition": (
            f"{_TOPIC} FENCED_LEADER_EPOCH INVALID_UPDATE_VERSION INELIGIBLE_REPLICA "
            "OPERATION_NOT_ATTEMPTED UNKNOWN_TOPIC_ID NEW_LEADER_ELECTED"
        ),
        "AlterReplicaLogDirs": (
            "UNKNOWN_TOPIC_OR_PARTITION REPLICA_NOT_AVAILABLE INVALID_TOPIC_EXCEPTION "
            "LOG_DIR_NOT_FOUND KAFKA_STORAGE_ERROR"
        ),
        "DescribeProducers": f"{_TOPIC} NOT_LEADER_OR_FOLLOWER",
        "CreateAcls": _ACLS,
        "DeleteAcls": _ACLS,
        "AlterUserScramCredentials": (
            "NOT_CONTROLLER RESOURCE_NOT_FOUND DUPLICATE_RESOURCE UNACCEPTABLE_CREDENTIAL "
            "UNSUPPORTED_SASL_MECHANISM"
        ),
        "AlterClientQuotas": "INVALID_CONFIG",
        "DescribeUserScramCredentials": "RESOURCE_NOT_FOUND DUPLICATE_RESOURCE",
        "DescribeTransactions": (
            f"{_COORDINATOR} TRANSACTIONAL_ID_AUTHORIZATION_FAILED TRANSACTIONAL_ID_NOT_FOUND"
        ),
    }
)

WHOLE: Final = _table(
    {
        "Fetch": (
            "FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH FETCH_SESSION_TOPIC_ID_ERROR"
        ),
        "OffsetFetch": _MEMBER,
        "OffsetDelete": f"{_GROUP} GROUP_ID_NOT_FOUND NON_EMPTY_GROUP",
        "JoinGroup": (
            f"{_MEMBER} INCONSISTENT_GROUP_PROTOCOL INVALID_SESSION_TIMEOUT MEMBER_ID_REQUIRED "
            "GROUP_MAX_SIZE_REACHED"
        ),
        "SyncGroup": f"{_MEMBER} INCONSISTENT_GROUP_PROTOCOL",
        "Heartbeat": _MEMBER,
        "LeaveGroup": _GROUP,
        "ListGroups": f"{_COORDINATOR} GROUP_AUTHORIZATION_FAILED",
        "InitProducerId": f"{_TRANSACTION} INVALID_TRANSACTION_TIMEOUT",
        "AddOffsetsToTxn": f"{_TRANSACTION} {_GROUP}",
        "EndTxn": _TRANSACTION,
        "ListTransactions": _COORDINATOR,
        "AlterPartitionReassignments": "NOT_CONTROLLER",
        "ListPartitionReassignments": "NOT_CONTROLLER UNKNOWN_TOPIC_OR_PARTITION",
        "DescribeLogDirs": "KAFKA_STORAGE_ERROR",
        "DescribeCluster": "UNSUPPORTED_ENDPOINT_TYPE",
        "ApiVersions": "UNSUPPORTED_VERSION",
        "SaslHandshake": "UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE",
        "SaslAuthenticate": "SASL_AUTHENTICATION_FAILED ILLEGAL_SASL_STATE",
        "DescribeAcls": _ACLS,
        "DescribeClientQuotas": "UNSUPPORTED_VERSION",
        "DeleteAcls": _ACLS,
        "CreateDelegationToken": _TOKEN,
        "RenewDelegationToken": _TOKEN,
        "ExpireDelegationToken": _TOKEN,
        "DescribeDelegationToken": _TOKEN,
        "AlterPartition": _BROKERS,
        "LeaderAndIsr": _BROKERS,
        "StopReplica": _BROKERS,
        "UpdateMetadata": _BROKERS,
        "ControlledShutdown": _BROKERS,
        "AllocateProducerIds": _BROKERS,
    }
)


def answerable(api: str) -> frozenset[str]:
    """List the errors that this API can return."""
    none: frozenset[str] = frozenset()
    return ANY | ROWS.get(api, none) | WHOLE.get(api, none)


def is_whole(api: str, error: str) -> bool:
    """Return whether an error concerns the whole request, and cannot be in a row."""
    # Without rows, every error concerns the whole request.
    return error in WHOLE.get(api, ()) or api not in ROWS
