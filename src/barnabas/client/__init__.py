"""Clients of any Kafka-compatible broker: one async core, and the same API blocking.

The names below are the public ones; they are loaded on first use, so that a program which only
consumes does not pay for the producer.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from barnabas.client.admin.admin import Admin, ConfigOperation, ConfigResource, NewTopic
    from barnabas.client.admin.scram_admin import (
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from barnabas.client.consumer.committed import GroupMetadata, OffsetAndMetadata
    from barnabas.client.consumer.consumer import Consumer
    from barnabas.client.consumer.fetched import ConsumerRecord
    from barnabas.client.consumer.subscription import RebalanceListener
    from barnabas.client.offsets import OffsetAndTimestamp
    from barnabas.client.producer.batch import ProducerRecord
    from barnabas.client.producer.batch_delivery import BatchDelivery
    from barnabas.client.producer.delivery import Delivery, RecordMetadata
    from barnabas.client.producer.producer import Producer
    from barnabas.client.sync.producer import SyncAdmin, SyncConsumer, SyncProducer
    from barnabas.security.acl import Operation, ResourceType
    from barnabas.security.acl_binding import (
        AclBinding,
        AclEntry,
        AclFilter,
        Pattern,
        PatternType,
        PermissionType,
    )
    from barnabas.types import TopicPartition

__all__ = [
    "AclBinding",
    "AclEntry",
    "AclFilter",
    "Admin",
    "BatchDelivery",
    "ConfigOperation",
    "ConfigResource",
    "Consumer",
    "ConsumerRecord",
    "Delivery",
    "GroupMetadata",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "Operation",
    "Pattern",
    "PatternType",
    "PermissionType",
    "Producer",
    "ProducerRecord",
    "RebalanceListener",
    "RecordMetadata",
    "ResourceType",
    "SyncAdmin",
    "SyncConsumer",
    "SyncProducer",
    "TopicPartition",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
]

_HOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Admin": "barnabas.client.admin.admin",
        "BatchDelivery": "barnabas.client.producer.batch_delivery",
        "ConfigOperation": "barnabas.client.admin.admin",
        "ConfigResource": "barnabas.client.admin.admin",
        "Consumer": "barnabas.client.consumer.consumer",
        "ConsumerRecord": "barnabas.client.consumer.fetched",
        "Delivery": "barnabas.client.producer.delivery",
        "GroupMetadata": "barnabas.client.consumer.committed",
        "NewTopic": "barnabas.client.admin.admin",
        "OffsetAndMetadata": "barnabas.client.consumer.committed",
        "OffsetAndTimestamp": "barnabas.client.offsets",
        "Producer": "barnabas.client.producer.producer",
        "ProducerRecord": "barnabas.client.producer.batch",
        "RebalanceListener": "barnabas.client.consumer.subscription",
        "RecordMetadata": "barnabas.client.producer.delivery",
        "SyncAdmin": "barnabas.client.sync.producer",
        "SyncConsumer": "barnabas.client.sync.producer",
        "SyncProducer": "barnabas.client.sync.producer",
        "TopicPartition": "barnabas.types",
        "UserScramCredentialDeletion": "barnabas.client.admin.scram_admin",
        "UserScramCredentialUpsertion": "barnabas.client.admin.scram_admin",
        "AclBinding": "barnabas.security.acl_binding",
        "AclEntry": "barnabas.security.acl_binding",
        "AclFilter": "barnabas.security.acl_binding",
        "Operation": "barnabas.security.acl",
        "Pattern": "barnabas.security.acl_binding",
        "PatternType": "barnabas.security.acl_binding",
        "PermissionType": "barnabas.security.acl_binding",
        "ResourceType": "barnabas.security.acl",
    }
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
