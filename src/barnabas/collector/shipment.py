"""What a collector sends, and how much of it has been."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.collector.record_joiner import IsStart
from barnabas.collector.rotated_log import QUIET_S
from barnabas.records.compression import LZ4


class Shipment(NamedTuple):
    """What is collected, and where it goes. `name`: of the collector, by which it finds its
    positions again; no two that run at once may share one."""

    bootstrap_servers: str
    topic: str
    name: str
    host: str
    codec: int = LZ4
    is_start: IsStart | None = None
    quiet_s: float = QUIET_S
    transaction_timeout_ms: int = 60_000


class Shipped(NamedTuple):
    """What was committed, or acknowledged."""

    lines: int = 0
    size_bytes: int = 0
    cut_lines: int = 0  # too long, so that only their beginnings were sent
    transactions: int = 0
    refused: int = 0  # received, and taken by no broker
    dropped: int = 0  # received while there was no room

    def plus(self, other: Shipped) -> Shipped:
        return Shipped(*(a + b for a, b in zip(self, other, strict=True)))
