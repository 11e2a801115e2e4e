"""Authorization: THE table of the operation and resource that each API needs, and the authorizer.

Every handler checks before it touches a resource, so that access control is one class to add and
not an audit of every handler (SE-1). Until there is an authorizer everything is allowed, as in
Kafka without `authorizer.class.name`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Operation(IntEnum):
    """Kafka's ACL operations, with their codes on the wire (KIP-140)."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class ResourceType(IntEnum):
    """Kafka's resource types, with their codes on the wire."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Needs(NamedTuple):
    """The operation on the type of resource that a request needs."""

    operation: Operation
    resource_type: ResourceType


CLUSTER_NAME = "kafka-cluster"

# By the API's stem; None: every client may send it.
REQUIRED: dict[str, Needs | None] = {
    "add_offsets_to_txn": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "add_partitions_to_txn": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "allocate_producer_ids": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "alter_configs": Needs(Operation.ALTER_CONFIGS, ResourceType.TOPIC),
    "alter_partition": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "alter_partition_reassignments": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "api_versions": None,
    "controlled_shutdown": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "create_partitions": Needs(Operation.ALTER, ResourceType.TOPIC),
    "create_topics": Needs(Operation.CREATE, ResourceType.TOPIC),
    "delete_groups": Needs(Operation.DELETE, ResourceType.GROUP),
    "delete_records": Needs(Operation.DELETE, ResourceType.TOPIC),
    "delete_topics": Needs(Operation.DELETE, ResourceType.TOPIC),
    "describe_cluster": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "describe_configs": Needs(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
    "describe_groups": Needs(Operation.DESCRIBE, ResourceType.GROUP),
    "describe_log_dirs": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "describe_producers": Needs(Operation.READ, ResourceType.TOPIC),
    "describe_transactions": Needs(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
    "elect_leaders": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "end_txn": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "fetch": Needs(Operation.READ, ResourceType.TOPIC),
    "find_coordinator": Needs(Operation.DESCRIBE, ResourceType.GROUP),
    "heartbeat": Needs(Operation.READ, ResourceType.GROUP),
    "incremental_alter_configs": Needs(Operation.ALTER_CONFIGS, ResourceType.TOPIC),
    "init_producer_id": Needs(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER),
    "join_group": Needs(Operation.READ, ResourceType.GROUP),
    "leader_and_isr": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "leave_group": Needs(Operation.READ, ResourceType.GROUP),
    "list_groups": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "list_offsets": Needs(Operation.DESCRIBE, ResourceType.TOPIC),
    "list_partition_reassignments": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "list_transactions": Needs(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
    "metadata": Needs(Operation.DESCRIBE, ResourceType.TOPIC),
    "offset_commit": Needs(Operation.READ, ResourceType.GROUP),
    "offset_delete": Needs(Operation.DELETE, ResourceType.GROUP),
    "offset_fetch": Needs(Operation.DESCRIBE, ResourceType.GROUP),
    "offset_for_leader_epoch": Needs(Operation.DESCRIBE, ResourceType.TOPIC),
    "produce": Needs(Operation.WRITE, ResourceType.TOPIC),
    "stop_replica": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "sync_group": Needs(Operation.READ, ResourceType.GROUP),
    "txn_offset_commit": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "update_metadata": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "write_txn_markers": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
}


class Principal(NamedTuple):
    """The identity of a client: `User:ANONYMOUS` on a listener without authentication."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


ANONYMOUS = Principal("User", "ANONYMOUS")


class AllowAll:
    """The authorizer of a broker that has none configured."""

    def allows(
        self, principal: Principal, client_address: str, needs: Needs, resource_name: str
    ) -> bool:
        return True
