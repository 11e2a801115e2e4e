"""The options of Kafka 2.3's clients are valid ones, and differ from today's defaults."""

from __future__ import annotations

from barnabas.client import kafka_2_3
from barnabas.client.config import ConsumerConfig, ProducerConfig, configure


def test_producer() -> None:
    common, config = configure(ProducerConfig, kafka_2_3.PRODUCER)
    assert (config.acks, config.enable_idempotence, config.partitioner) == (1, False, "round-robin")
    assert common.retry_backoff_max_ms == common.retry_backoff_ms == 100


def test_consumer() -> None:
    _, config = configure(ConsumerConfig, kafka_2_3.CONSUMER)
    assert (config.session_timeout_ms, config.partition_assignment_strategy) == (10_000, "range")


def test_each_differs_from_todays_default() -> None:
    for options, today in (
        (kafka_2_3.PRODUCER, configure(ProducerConfig, {})),
        (kafka_2_3.CONSUMER, configure(ConsumerConfig, {})),
    ):
        common, own = today
        defaults = {name: getattr(own, name, getattr(common, name, None)) for name in options}
        assert [name for name, value in options.items() if value == defaults[name]] == []
