"""The settings that the transaction coordinator's machine obeys."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig


class TransactionConfig(NamedTuple):
    """Kafka's `transaction.*` and `transactional.id.*` keys, with Kafka's defaults."""

    max_timeout_ms: int = 900_000
    """The longest timeout that a producer may ask for."""
    abort_interval_ms: int = 10_000
    """Between two looks for transactions that have lasted too long."""
    expiration_ms: int = 604_800_000
    """How long an id is remembered that nobody uses."""
    expiration_interval_ms: int = 3_600_000
    """Between two looks for ids to forget."""

    @classmethod
    def of(cls, config: BrokerConfig) -> TransactionConfig:
        return cls(
            max_timeout_ms=config.int("transaction.max.timeout.ms"),
            abort_interval_ms=config.int(
                "transaction.abort.timed.out.transaction.cleanup.interval.ms"
            ),
            expiration_ms=config.int("transactional.id.expiration.ms"),
            expiration_interval_ms=config.int(
                "transaction.remove.expired.transaction.cleanup.interval.ms"
            ),
        )
