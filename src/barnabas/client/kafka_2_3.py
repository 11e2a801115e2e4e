"""Provides the options that make our clients behave like Kafka 2.3's clients by default.

    from barnabas.client import SyncProducer, kafka_2_3

    producer = SyncProducer("localhost:9092", **kafka_2_3.PRODUCER)

To override them, add your own options: `**{**kafka_2_3.PRODUCER, "acks": "all"}`.
"""

from __future__ import annotations

from typing import Final

from barnabas.client.config import ConsumerOptions, ProducerOptions

PRODUCER: Final[ProducerOptions] = {
    "acks": 1,
    "enable_idempotence": False,
    "partitioner": "round-robin",  # for records without a key
    "retry_backoff_max_ms": 100,  # the pause before a retry does not grow
}

CONSUMER: Final[ConsumerOptions] = {
    "session_timeout_ms": 10_000,
    "partition_assignment_strategy": "range",
    "retry_backoff_max_ms": 100,
}
