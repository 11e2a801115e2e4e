"""The coordinators' settings are Kafka's keys, with Kafka's defaults."""

from __future__ import annotations

from barnabas.config import BrokerConfig
from barnabas.coordinator.settings import GroupConfig, TransactionConfig


def test_defaults_are_those_of_the_keys() -> None:
    assert GroupConfig.of(BrokerConfig({})) == GroupConfig()
    assert TransactionConfig.of(BrokerConfig({})) == TransactionConfig()


def test_each_key_of_groups_has_its_place() -> None:
    config = BrokerConfig(
        {
            "group.min.session.timeout.ms": "1",
            "group.max.session.timeout.ms": "2",
            "group.max.size": "3",
            "group.initial.rebalance.delay.ms": "4",
            "offset.metadata.max.bytes": "5",
            "offsets.retention.minutes": "6",
            "offsets.retention.check.interval.ms": "7",
        }
    )
    assert GroupConfig.of(config) == (1, 2, 3, 4, 5, 360_000, 7)


def test_each_key_of_transactions_has_its_place() -> None:
    config = BrokerConfig(
        {
            "transaction.max.timeout.ms": "1",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2",
            "transactional.id.expiration.ms": "3",
            "transaction.remove.expired.transaction.cleanup.interval.ms": "4",
        }
    )
    assert TransactionConfig.of(config) == (1, 2, 3, 4)
