"""The options of Kafka 2.3's clients are valid ones, and differ from today's defaults."""

from __future__ import annotations

from barnabas.client import kafka_2_3
from barnabas.client.config import ClientConfig, ConsumerConfig, ProducerConfig, configure


def test_producer() -> None:
    common, config = configure(ProducerConfig, kafka_2_3.PRODUCER)
    assert (config.acks, config.enable_idempotence, config.partitioner) == (1, False, "round-robin")
    assert common.retry_backoff_max_ms == common.retry_backoff_ms == 100


def test_consumer() -> None:
    _, config = configure(ConsumerConfig, kafka_2_3.CONSUMER)
    assert (config.session_timeout_ms, config.partition_assignment_strategy) == (10_000, "range")


def test_each_differs_from_todays_default() -> None:
    today = {
        **ClientConfig._field_defaults,
        **ProducerConfig._field_defaults,
        **ConsumerConfig._field_defaults,
    }
    options = {**kafka_2_3.PRODUCER, **kafka_2_3.CONSUMER}
    assert [name for name, value in options.items() if value == today[name]] == []
