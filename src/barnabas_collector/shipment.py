"""Defines the task of a collector, and the counts that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from barnabas.records.compression import LZ4
from barnabas_collector.collector_metrics import CollectorMetrics
from barnabas_collector.forgetting import RETENTION_S
from barnabas_collector.record_joiner import IsStart
from barnabas_collector.redaction import Redact
from barnabas_collector.rotated_log import QUIET_S


class Shipment(NamedTuple):
    """Specifies the input of a collector and the destination of the lines.

    `name` identifies the positions. Two collectors that run at the same time must not share a name.
    """

    bootstrap_servers: str
    topic: str
    name: str
    host: str
    codec: int = LZ4
    is_start: IsStart | None = None
    quiet_s: float = QUIET_S
    transaction_timeout_ms: int = 60_000
    from_end: bool = False  # start at the ends of the files found by the first look
    has_journal: bool = False  # also send the entries of systemd's journal
    redact: Redact | None = None  # replaces secrets
    retention_s: float = RETENTION_S  # how long the positions of missing files are kept
    metrics: CollectorMetrics | None = None
    client_options: Mapping[str, Any] = {}
    """Options for every client, such as security options."""


class Shipped(NamedTuple):
    """Counts the lines that were committed or acknowledged, and the lines that were lost."""

    lines: int = 0
    size_bytes: int = 0
    cut_lines: int = 0  # lines truncated because of their length
    transactions: int = 0
    refused: int = 0  # received but refused by the brokers
    dropped: int = 0  # dropped while there was no room

    def plus(self, other: Shipped) -> Shipped:
        return Shipped(*(a + b for a, b in zip(self, other, strict=True)))
