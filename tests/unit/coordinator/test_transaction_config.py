"""The coordinator's settings are Kafka's keys, with Kafka's defaults."""

from __future__ import annotations

from barnabas.config import BrokerConfig
from barnabas.coordinator.transaction_config import TransactionConfig


def test_defaults_are_those_of_the_keys() -> None:
    assert TransactionConfig.of(BrokerConfig({})) == TransactionConfig()


def test_each_key_has_its_place() -> None:
    config = BrokerConfig(
        {
            "transaction.max.timeout.ms": "1",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2",
            "transactional.id.expiration.ms": "3",
            "transaction.remove.expired.transaction.cleanup.interval.ms": "4",
        }
    )
    assert TransactionConfig.of(config) == (1, 2, 3, 4)
