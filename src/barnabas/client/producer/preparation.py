"""What happens to a record before it is checked: interceptors, then serializers (PR-1, PR-10)."""

from __future__ import annotations

from typing import Any

from barnabas.client.config import ProducerConfig
from barnabas.client.interceptors import PRODUCER_METHODS, interceptor_classes
from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.producer.delivery import Delivery, RecordMetadata
from barnabas.client.serialization import serialize, serializer

_NO_PARTITION = -1


class Preparation:
    """The interceptors and serializers of one producer."""

    def __init__(self, config: ProducerConfig) -> None:
        self._key = _optional(config.key_serializer, "key.serializer")
        self._value = _optional(config.value_serializer, "value.serializer")
        self._interceptors = interceptor_classes(config.interceptor_classes, PRODUCER_METHODS)

    @property
    def is_needed(self) -> bool:
        return bool(self._interceptors or self._key or self._value)

    @property
    def has_interceptors(self) -> bool:
        return bool(self._interceptors)

    def prepared(self, record: ProducerRecord) -> ProducerRecord:
        """The record with bytes. Raises SerializationError."""
        record = self._interceptors.on_send(record)
        topic, value, key = record[:3]
        if self._key is not None:
            key = serialize(self._key, key, "key", topic)
        if self._value is not None:
            value = serialize(self._value, value, "value", topic)
        return record._replace(value=value, key=key)

    def acknowledged(self, delivery: Delivery) -> None:
        """Notify interceptors of the outcome of a record that was queued."""
        error = delivery.exception()
        if error is None:
            self._interceptors.on_acknowledgement(delivery.result(), None)
        else:
            topic, partition = delivery.batch.topic_partition
            metadata = RecordMetadata(topic, partition, -1, delivery.timestamp_ms)
            self._interceptors.on_acknowledgement(metadata, error)

    def refused(self, topic: str, partition: int | None, error: BaseException) -> None:
        """Notify interceptors of a record that was not queued."""
        where = _NO_PARTITION if partition is None else partition
        self._interceptors.on_acknowledgement(RecordMetadata(topic, where, -1, -1), error)

    def close(self) -> None:
        self._interceptors.close()


def _optional(given: Any, option: str) -> Any:
    return None if given is None else serializer(given, option)
