"""A log directory and a clock that stands still, for simulated files."""

from __future__ import annotations

from pathlib import Path

from barnabas.types import TopicPartition

NAME = TopicPartition("t", 0)


DATA = Path("/data")


class Noon:
    def wall_ms(self) -> int:
        return 1_700_000_000_000

    monotonic_ms = wall_ms
