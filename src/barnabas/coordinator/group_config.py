"""What a broker's configuration says about groups and their offsets, as one value."""

from __future__ import annotations

from typing import NamedTuple


class GroupConfig(NamedTuple):
    """The keys that `Groups` goes by, with Kafka's defaults; replaced as a whole when one changes.

    The broker makes it from its `BrokerConfig`; beside each field stands the key.
    """

    min_session_timeout_ms: int = 6_000  # group.min.session.timeout.ms
    max_session_timeout_ms: int = 1_800_000  # group.max.session.timeout.ms
    max_size: int = 2_147_483_647  # group.max.size
    initial_rebalance_delay_ms: int = 3_000  # group.initial.rebalance.delay.ms
    offset_metadata_max_bytes: int = 4_096  # offset.metadata.max.bytes
    offsets_retention_ms: int = 10_080 * 60_000  # offsets.retention.minutes
    offsets_retention_check_interval_ms: int = 600_000  # offsets.retention.check.interval.ms
