"""Provides the blocking admin client."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Unpack, overload

from barnabas.client.admin.admin import (
    Admin,
    ClusterDescription,
    ConfigEntry,
    ConfigResource,
    LogDirDescription,
    NewTopic,
    TopicDescription,
)
from barnabas.client.admin.admin_arguments import ConfigOperations, Names
from barnabas.client.admin.event_admin import BrokerEvents
from barnabas.client.admin.group_admin import GroupDescription, GroupListing
from barnabas.client.admin.partition_admin import Reassignment
from barnabas.client.admin.quota_admin import QuotaEntity
from barnabas.client.admin.replica_admin import ReplicaEnd
from barnabas.client.admin.scram_admin import ScramAlteration
from barnabas.client.admin.token_admin import DelegationToken
from barnabas.client.admin.transaction_admin import (
    ProducerState,
    TransactionDescription,
    TransactionListing,
)
from barnabas.client.arguments import Partitions
from barnabas.client.config import ClientOptions, Servers
from barnabas.client.offsets import OffsetAndTimestamp
from barnabas.client.sync.blocking import BlockingClient, documented_by
from barnabas.errors import KafkaError
from barnabas.security.acl_binding import AclBinding, AclFilter
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer.committed import OffsetAndMetadata


@documented_by(Admin)
class SyncAdmin(BlockingClient[Admin]):
    """A blocking `Admin`. Its methods return when they are done, and raise the same errors.

    Several threads may share it.

        with SyncAdmin("localhost:9092") as admin:
            admin.create_topics([NewTopic("test", num_partitions=3)])
    """

    def __init__(self, bootstrap_servers: Servers = None, **options: Unpack[ClientOptions]) -> None:
        super().__init__(Admin(bootstrap_servers, **options))

    def create_topics(
        self, topics: NewTopic | str | Iterable[NewTopic | str], *, validate_only: bool = False
    ) -> None:
        self._thread.run(self._client.create_topics(topics, validate_only=validate_only))

    def delete_topics(self, names: Names) -> None:
        self._thread.run(self._client.delete_topics(names))

    def list_topics(self, *, include_internal: bool = True) -> list[str]:
        return self._thread.run(self._client.list_topics(include_internal=include_internal))

    def describe_topics(self, names: Names | None = None) -> list[TopicDescription]:
        return self._thread.run(self._client.describe_topics(names))

    def create_partitions(
        self,
        topic: str,
        total_count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        self._thread.run(
            self._client.create_partitions(
                topic, total_count, assignments, validate_only=validate_only
            )
        )

    @overload
    def describe_configs(
        self,
        resource: ConfigResource,
        names: Names | None = None,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> list[ConfigEntry]: ...

    @overload
    def describe_configs(
        self,
        resource: list[ConfigResource],
        names: Names | None = None,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> dict[ConfigResource, list[ConfigEntry]]: ...

    def describe_configs(
        self,
        resource: ConfigResource | list[ConfigResource],
        names: Names | None = None,
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> list[ConfigEntry] | dict[ConfigResource, list[ConfigEntry]]:
        describe = partial(
            self._client.describe_configs,
            names=names,
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
        )
        if isinstance(resource, list):
            return self._thread.run(describe(resource))
        return self._thread.run(describe(resource))

    def alter_configs(
        self,
        resource: ConfigResource,
        operations: ConfigOperations,
        *,
        validate_only: bool = False,
    ) -> None:
        self._thread.run(
            self._client.alter_configs(resource, operations, validate_only=validate_only)
        )

    def describe_log_dirs(self) -> dict[int, tuple[LogDirDescription, ...]]:
        return self._thread.run(self._client.describe_log_dirs())

    def describe_cluster(self) -> ClusterDescription:
        return self._thread.run(self._client.describe_cluster())

    def events(self, after: Mapping[int, int] | None = None) -> dict[int, BrokerEvents]:
        return self._thread.run(self._client.events(after))

    # ---- partitions ----

    def elect_leaders(
        self, election_type: int, partitions: Partitions | None = None
    ) -> dict[TopicPartition, KafkaError | None]:
        return self._thread.run(self._client.elect_leaders(election_type, partitions))

    def alter_partition_reassignments(
        self, replicas: Mapping[TopicPartition, Sequence[int] | None]
    ) -> dict[TopicPartition, KafkaError | None]:
        return self._thread.run(self._client.alter_partition_reassignments(replicas))

    def list_partition_reassignments(
        self, partitions: Partitions | None = None
    ) -> dict[TopicPartition, Reassignment]:
        return self._thread.run(self._client.list_partition_reassignments(partitions))

    def replica_ends(
        self, replicas: Mapping[TopicPartition, Sequence[int]]
    ) -> dict[TopicPartition, dict[int, ReplicaEnd]]:
        return self._thread.run(self._client.replica_ends(replicas))

    def alter_replica_log_dirs(
        self, broker_id: int, log_dirs: Mapping[TopicPartition, str]
    ) -> dict[TopicPartition, KafkaError | None]:
        return self._thread.run(self._client.alter_replica_log_dirs(broker_id, log_dirs))

    # ---- records ----

    def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, OffsetAndTimestamp]:
        return self._thread.run(
            self._client.list_offsets(timestamps, read_committed=read_committed)
        )

    def delete_records(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return self._thread.run(self._client.delete_records(offsets))

    # ---- groups ----

    def list_groups(self, *, states: Names = (), types: Names = ()) -> list[GroupListing]:
        return self._thread.run(self._client.list_groups(states=states, types=types))

    def describe_groups(
        self, group_ids: Names, *, include_events: bool = False
    ) -> dict[str, GroupDescription]:
        return self._thread.run(
            self._client.describe_groups(group_ids, include_events=include_events)
        )

    def delete_groups(self, group_ids: Names) -> None:
        self._thread.run(self._client.delete_groups(group_ids))

    def remove_members(
        self, group_id: str, *, instance_ids: Names = (), member_ids: Names = ()
    ) -> None:
        self._thread.run(
            self._client.remove_members(group_id, instance_ids=instance_ids, member_ids=member_ids)
        )

    def list_group_offsets(
        self,
        group_id: str,
        partitions: Partitions | None = None,
        *,
        require_stable: bool = False,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        return self._thread.run(
            self._client.list_group_offsets(group_id, partitions, require_stable=require_stable)
        )

    def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata | int]
    ) -> None:
        self._thread.run(self._client.alter_group_offsets(group_id, offsets))

    def delete_group_offsets(self, group_id: str, partitions: Partitions) -> None:
        self._thread.run(self._client.delete_group_offsets(group_id, partitions))

    # ---- rules ----

    def create_acls(self, bindings: AclBinding | Iterable[AclBinding]) -> None:
        self._thread.run(self._client.create_acls(bindings))

    def describe_acls(self, wanted: AclFilter | None = None) -> list[AclBinding]:
        return self._thread.run(self._client.describe_acls(wanted))

    def delete_acls(self, filters: AclFilter | Iterable[AclFilter]) -> list[AclBinding]:
        return self._thread.run(self._client.delete_acls(filters))

    # ---- quotas ----

    def describe_client_quotas(
        self,
        entity: Mapping[str, str | None] | None = None,
        *,
        types: Collection[str] = (),
        is_strict: bool = False,
    ) -> dict[QuotaEntity, dict[str, float]]:
        return self._thread.run(
            self._client.describe_client_quotas(entity, types=types, is_strict=is_strict)
        )

    def alter_client_quotas(
        self,
        entity: Mapping[str, str | None],
        quotas: Mapping[str, float | None],
        *,
        validate_only: bool = False,
    ) -> None:
        self._thread.run(
            self._client.alter_client_quotas(entity, quotas, validate_only=validate_only)
        )

    # ---- credentials ----

    def describe_user_scram_credentials(
        self, users: Names | None = None
    ) -> dict[str, dict[str, int]]:
        return self._thread.run(self._client.describe_user_scram_credentials(users))

    def alter_user_scram_credentials(
        self, alterations: ScramAlteration | Iterable[ScramAlteration]
    ) -> None:
        self._thread.run(self._client.alter_user_scram_credentials(alterations))

    def create_delegation_token(
        self,
        *,
        owner: str | None = None,
        renewers: str | Iterable[str] = (),
        max_lifetime_ms: int = -1,
    ) -> DelegationToken:
        return self._thread.run(
            self._client.create_delegation_token(
                owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms
            )
        )

    def renew_delegation_token(self, hmac: bytes, renew_period_ms: int = -1) -> int:
        return self._thread.run(self._client.renew_delegation_token(hmac, renew_period_ms))

    def expire_delegation_token(self, hmac: bytes, expiry_period_ms: int = -1) -> int:
        return self._thread.run(self._client.expire_delegation_token(hmac, expiry_period_ms))

    def describe_delegation_tokens(
        self, owners: str | Iterable[str] | None = None
    ) -> list[DelegationToken]:
        return self._thread.run(self._client.describe_delegation_tokens(owners))

    # ---- transactions ----

    def list_transactions(
        self,
        *,
        states: Names = (),
        producer_ids: int | Iterable[int] = (),
        longer_than_ms: int = -1,
    ) -> list[TransactionListing]:
        return self._thread.run(
            self._client.list_transactions(
                states=states, producer_ids=producer_ids, longer_than_ms=longer_than_ms
            )
        )

    def describe_transactions(self, transactional_ids: Names) -> dict[str, TransactionDescription]:
        return self._thread.run(self._client.describe_transactions(transactional_ids))

    def describe_producers(
        self, partitions: Partitions
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        return self._thread.run(self._client.describe_producers(partitions))

    def abort_transaction(
        self,
        partition: TopicPartition,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int = -1,
    ) -> None:
        self._thread.run(
            self._client.abort_transaction(
                partition, producer_id, producer_epoch, coordinator_epoch
            )
        )

    def fence_producers(self, transactional_ids: Names) -> None:
        self._thread.run(self._client.fence_producers(transactional_ids))
