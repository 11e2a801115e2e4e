"""Defines the interface of an authorizer, and the operation and the resource that each API
requires.

Every handler checks authorization before it accesses a resource (SE-1). As in Kafka, everything is
allowed unless `authorizer.class.name` is set. If it is set, `acl_authorizer` is loaded and makes
the decisions.
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
    """The operation and the type of resource that a request requires."""

    operation: Operation
    resource_type: ResourceType


# The keys are the stems of the APIs. None means that every client may send the request.
REQUIRED: dict[str, Needs | None] = {
    "add_offsets_to_txn": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "add_partitions_to_txn": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "allocate_producer_ids": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "alter_client_quotas": Needs(Operation.ALTER_CONFIGS, ResourceType.CLUSTER),
    # For brokers and their loggers, the handlers require the same operation on the cluster instead.
    "alter_configs": Needs(Operation.ALTER_CONFIGS, ResourceType.TOPIC),
    "alter_partition": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "alter_partition_reassignments": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "alter_replica_log_dirs": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "alter_user_scram_credentials": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "api_versions": None,
    "controlled_shutdown": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "create_acls": Needs(Operation.ALTER, ResourceType.CLUSTER),
    # KIP-48: a client may create a token for itself, unless the client was authenticated with a
    # token.
    "create_delegation_token": None,
    "create_partitions": Needs(Operation.ALTER, ResourceType.TOPIC),
    # CREATE on the cluster is an alternative. It applies to all topics.
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
    # KIP-664 requires READ, as for a fetch, because the response reveals something about the
    # records.
    "describe_producers": Needs(Operation.READ, ResourceType.TOPIC),
    "describe_transactions": Needs(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
    "describe_user_scram_credentials": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "elect_leaders": Needs(Operation.ALTER, ResourceType.CLUSTER),
    "end_txn": Needs(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
    "expire_delegation_token": None,
    "fetch": Needs(Operation.READ, ResourceType.TOPIC),
    # To look up a transactional id, the handler requires DESCRIBE on that id instead.
    "find_coordinator": Needs(Operation.DESCRIBE, ResourceType.GROUP),
    "heartbeat": Needs(Operation.READ, ResourceType.GROUP),
    "incremental_alter_configs": Needs(Operation.ALTER_CONFIGS, ResourceType.TOPIC),
    # WRITE on any topic is an alternative (KIP-679). If there is a transactional id, WRITE on that
    # id is required instead.
    "init_producer_id": Needs(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER),
    "join_group": Needs(Operation.READ, ResourceType.GROUP),
    "leader_and_isr": Needs(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),
    "leave_group": Needs(Operation.READ, ResourceType.GROUP),
    # DESCRIBE on individual groups is an alternative. In that case, only those groups are listed.
    "list_groups": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "list_offsets": Needs(Operation.DESCRIBE, ResourceType.TOPIC),
    "list_partition_reassignments": Needs(Operation.DESCRIBE, ResourceType.CLUSTER),
    "list_transactions": Needs(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
    "metadata": Needs(Operation.DESCRIBE, ResourceType.TOPIC),
    # READ on each topic is required as well, as for a fetch.
    "offset_commit": Needs(Operation.READ, ResourceType.GROUP),
    "offset_delete": Needs(Operation.DELETE, ResourceType.GROUP),
    "offset_fetch": Needs(Operation.DESCRIBE, ResourceType.GROUP),
    "offset_for_leader_epoch": Needs(Operation.DESCRIBE, ResourceType.TOPIC),
    "produce": Needs(Operation.WRITE, ResourceType.TOPIC),
    "renew_delegation_token": None,
    # Clients send these two requests in order to authenticate, so ACLs cannot apply to the clients
    # yet.
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
"""The stems of the APIs that only brokers and controllers use."""


class Audit(NamedTuple):
    """Determines whether the outcome of a decision is logged."""

    logs_grant: bool = True
    logs_denial: bool = True
    references: int = 1
    """The number of times that the request names the resource."""


ASKED = Audit()
TRIED = Audit(logs_denial=False)
SHOWN = Audit(logs_grant=False, logs_denial=False)


class Asking(Protocol):
    """The parts of a request that are used by an authorizer."""

    @property
    def client(self) -> ClientConnection: ...

    @property
    def api(self) -> Api: ...


class Authorizer(Protocol):
    """Decides whether operations are allowed."""

    @property
    def acls(self) -> AclStore | None:
        """The ACLs of the authorizer, or None if it does not use ACLs."""
        ...

    @property
    def grants(self) -> object | None:
        """An object that is replaced whenever the allowed operations may have changed. A connection
        can cache its grants until that happens. If the object is None, grants must not be cached.
        """
        ...

    def allows(
        self, context: Asking, needs: Needs, resource_name: str, audit: Audit = ASKED
    ) -> bool:
        """Return whether the client that sent the request is authorized to perform
        the operation.
        """
        ...

    def allows_somewhere(self, context: Asking, needs: Needs) -> bool:
        """Return whether the client is authorized on at least one resource of this type."""
        ...


class AllowAll:
    """The authorizer for a broker that has none configured."""

    acls = None
    grants: object | None = "everything"

    def allows(
        self, context: Asking, needs: Needs, resource_name: str, audit: Audit = ASKED
    ) -> bool:
        return True

    def allows_somewhere(self, context: Asking, needs: Needs) -> bool:
        return True
