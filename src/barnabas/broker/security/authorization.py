"""Defines the authorizer interface, and the operation and resource that each API needs.

Every handler checks authorization before it accesses a resource (SE-1). As in Kafka, everything is
allowed unless `authorizer.class.name` is set; then `acl_authorizer` is loaded and decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from barnabas.named_tuple import NamedTuple
from barnabas.security.acl import Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.network.client_connection import ClientConnection
    from barnabas.broker.security.acl_store import AclStore
    from barnabas.protocol.api import Api


class Needs(NamedTuple):
    """The operation and the resource type that a request needs."""

    operation: Operation
    resource_type: ResourceType


# This is keyed by the API's stem; None means that every client may send the request.
REQUIRED: dict[str, Needs | None] = {
    "add_offsets_to_txn": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "add_partitions_to_txn": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "allocate_producer_ids": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "alter_client_quotas": Needs(Operation.ALTER_CONFIGS, ResourceType.CLUSTER),
    # For brokers and their loggers, the handlers require the same operation on the cluster.
    "alter_configs": Needs(Operation.ALTER_CONFIGS, ResourceType.TOPIC),
    "alter_partition": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "alter_partition_reassignments": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "alter_replica_log_dirs": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "alter_user_scram_credentials": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "api_versions": None,
    "controlled_shutdown": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "create_acls": Needs(Operation.ALTER, ResourceType.CLUSTER),
    # KIP-48: any client may create its own token, unless it authenticated with a token.
    "create_delegation_token": None,
    "create_partitions": Needs(Operation.ALTER, ResourceType.TOPIC),
    # Or CREATE on the cluster, which covers every topic.
    "create_topics": Needs(Operation.CREATE, ResourceType.TOPIC),
    "delete_acls": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "delete_groups": Needs(Operation.DELETE, ResourceType.GROUP),
    "delete_records": Needs(Operation.DELETE, ResourceType.TOPIC),
    "delete_topics": Needs(Operation.DELETE, ResourceType.TOPIC),
    "describe_acls": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "describe_client_quotas": Needs(Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER),
    "describe_cluster": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "describe_configs": Needs(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
    "describe_delegation_token": None,
    "describe_groups": Needs(Operation.DESCRIBE, ResourceType.GROUP),
    "describe_log_dirs": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    # KIP-664 requires READ, as for a fetch, because the response reveals information about
    # records.
    "describe_producers": Needs(Operation.READ, ResourceType.TOPIC),
    "describe_transactions": Needs(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
    "describe_user_scram_credentials": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "elect_leaders": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "end_txn": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "expire_delegation_token": None,
    "fetch": Needs(Operation.READ, ResourceType.TOPIC),
    # For a transactional id, the handler requires DESCRIBE on that id.
    "find_coordinator": Needs(Operation.DESCRIBE, ResourceType.GROUP),
    "heartbeat": Needs(Operation.READ, ResourceType.GROUP),
    "incremental_alter_configs": Needs(Operation.ALTER_CONFIGS, ResourceType.TOPIC),
    # Or WRITE on any topic (KIP-679); with a transactional id, WRITE on that id instead.
    "init_producer_id": Needs(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER),
    "join_group": Needs(Operation.READ, ResourceType.GROUP),
    "leader_and_isr": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "leave_group": Needs(Operation.READ, ResourceType.GROUP),
    # Or DESCRIBE on individual groups; then only those groups are listed.
    "list_groups": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "list_offsets": Needs(Operation.DESCRIBE, ResourceType.TOPIC),
    "list_partition_reassignments": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "list_transactions": Needs(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
    "metadata": Needs(Operation.DESCRIBE, ResourceType.TOPIC),
    # And READ on each topic, as for a fetch.
    "offset_commit": Needs(Operation.READ, ResourceType.GROUP),
    "offset_delete": Needs(Operation.DELETE, ResourceType.GROUP),
    "offset_fetch": Needs(Operation.DESCRIBE, ResourceType.GROUP),
    "offset_for_leader_epoch": Needs(Operation.DESCRIBE, ResourceType.TOPIC),
    "produce": Needs(Operation.WRITE, ResourceType.TOPIC),
    "renew_delegation_token": None,
    # Clients send these two requests to authenticate, so no ACL can apply yet.
    "sasl_authenticate": None,
    "sasl_handshake": None,
    "stop_replica": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "sync_group": Needs(Operation.READ, ResourceType.GROUP),
    "txn_offset_commit": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "update_metadata": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "write_txn_markers": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
}

BETWEEN_BROKERS: frozenset[str] = frozenset(
    stem
    for stem, needs in REQUIRED.items()
    if needs == Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
)
"""The stems of the APIs that only brokers and controllers send."""


class Audit(NamedTuple):
    """Determines which results of a decision are logged."""

    logs_grant: bool = True
    logs_denial: bool = True
    references: int = 1
    """How many times the request names the resource."""


ASKED = Audit()
TRIED = Audit(logs_denial=False)
SHOWN = Audit(logs_grant=False, logs_denial=False)


class Asking(Protocol):
    """The parts of a request that an authorizer uses."""

    @property
    def client(self) -> ClientConnection: ...

    @property
    def api(self) -> Api: ...


class Authorizer(Protocol):
    """Decides on one operation."""

    @property
    def acls(self) -> AclStore | None:
        """The authorizer's ACLs; None if it has no ACLs."""
        ...

    @property
    def grants(self) -> object | None:
        """An object that is replaced when allowed operations may have changed. A connection can
        cache its grants until then. If this is None, it must not cache any.
        """
        ...

    def allows(
        self, context: Asking, needs: Needs, resource_name: str, audit: Audit = ASKED
    ) -> bool:
        """Return whether the client of a request is authorized for the operation."""
        ...

    def allows_somewhere(self, context: Asking, needs: Needs) -> bool:
        """Return whether the client is authorized on at least one resource of the type."""
        ...


class AllowAll:
    """Used by a broker without a configured authorizer."""

    acls = None
    grants: object | None = "everything"

    def allows(
        self, context: Asking, needs: Needs, resource_name: str, audit: Audit = ASKED
    ) -> bool:
        return True

    def allows_somewhere(self, context: Asking, needs: Needs) -> bool:
        return True
