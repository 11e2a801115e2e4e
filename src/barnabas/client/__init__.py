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
    from barnabas.client.admin import Admin, ConfigOperation, ConfigResource, NewTopic
    from barnabas.client.batch import ProducerRecord
    from barnabas.client.committed import GroupMetadata, OffsetAndMetadata
    from barnabas.client.consumer import Consumer
    from barnabas.client.delivery import RecordMetadata
    from barnabas.client.fetched import ConsumerRecord
    from barnabas.client.offsets import OffsetAndTimestamp
    from barnabas.client.producer import Producer
    from barnabas.client.subscription import RebalanceListener
    from barnabas.client.sync import SyncAdmin, SyncConsumer, SyncProducer
    from barnabas.types import TopicPartition

__all__ = [
    "Admin",
    "ConfigOperation",
    "ConfigResource",
    "Consumer",
    "ConsumerRecord",
    "GroupMetadata",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "Producer",
    "ProducerRecord",
    "RebalanceListener",
    "RecordMetadata",
    "SyncAdmin",
    "SyncConsumer",
    "SyncProducer",
    "TopicPartition",
]

_HOMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Admin": "barnabas.client.admin",
        "ConfigOperation": "barnabas.client.admin",
        "ConfigResource": "barnabas.client.admin",
        "Consumer": "barnabas.client.consumer",
        "ConsumerRecord": "barnabas.client.fetched",
        "GroupMetadata": "barnabas.client.committed",
        "NewTopic": "barnabas.client.admin",
        "OffsetAndMetadata": "barnabas.client.committed",
        "OffsetAndTimestamp": "barnabas.client.offsets",
        "Producer": "barnabas.client.producer",
        "ProducerRecord": "barnabas.client.batch",
        "RebalanceListener": "barnabas.client.subscription",
        "RecordMetadata": "barnabas.client.delivery",
        "SyncAdmin": "barnabas.client.sync",
        "SyncConsumer": "barnabas.client.sync",
        "SyncProducer": "barnabas.client.sync",
        "TopicPartition": "barnabas.types",
    }
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
