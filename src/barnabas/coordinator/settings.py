"""Defines the settings of the group coordinator and the transaction coordinator.

Each class is an immutable value that is replaced when a key changes. The defaults are the same as
in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig


class GroupConfig(NamedTuple):
    """The settings of the group coordinator, taken from the broker's configuration."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2_147_483_647
    """The maximum number of members of a group."""
    initial_rebalance_delay_ms: int = 3_000
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000

    @classmethod
    def of(cls, config: BrokerConfig) -> GroupConfig:
        return cls(
            min_session_timeout_ms=config.int("group.min.session.timeout.ms"),
            max_session_timeout_ms=config.int("group.max.session.timeout.ms"),
            max_size=config.int("group.max.size"),
            initial_rebalance_delay_ms=config.int("group.initial.rebalance.delay.ms"),
            offset_metadata_max_bytes=config.int("offset.metadata.max.bytes"),
            offsets_retention_ms=config.int("offsets.retention.minutes") * 60_000,
            offsets_retention_check_interval_ms=config.int("offsets.retention.check.interval.ms"),
        )


class TransactionConfig(NamedTuple):
    """The settings of the transaction coordinator, taken from the broker's configuration."""

    max_timeout_ms: int = 900_000
    """The maximum timeout that a producer can request."""
    abort_interval_ms: int = 10_000
    """How often the coordinator looks for transactions that have timed out."""
    expiration_ms: int = 604_800_000
    """How long a transactional id is kept if it is not used."""
    expiration_interval_ms: int = 3_600_000
    """How often the coordinator looks for expired transactional ids."""

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
