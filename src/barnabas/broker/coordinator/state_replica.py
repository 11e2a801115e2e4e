"""Defines the interfaces that a coordinator's shard uses: a replica of its topic, and a clock.

`broker.partitions` and `broker.runtime` implement them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from barnabas.types import TopicPartition


class AppendedOffsets(Protocol):
    """The offsets of an appended batch."""

    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...


class LogSlice(Protocol):
    """A range of bytes in a log."""

    def read(self) -> bytes:
        """Return the bytes; may block on the disk."""
        ...

    def release(self) -> None:
        """Release the bytes once they are no longer needed."""
        ...


class StateLog(Protocol):
    """The log of an internal topic's partition."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    def read(self, offset: int, max_bytes: int, end_offset: int) -> Sequence[LogSlice]:
        """Read whole batches, starting at `offset`; none if compaction removed them."""
        ...


class LedPartition(Protocol):
    """The machine of a partition that this broker leads."""

    @property
    def leader_epoch(self) -> int: ...

    def check_acks_all(self) -> None:
        """Raise NotEnoughReplicas if the ISR is below the minimum."""
        ...


class StateReplica(Protocol):
    """The leader's replica of an internal topic's partition."""

    @property
    def topic_partition(self) -> TopicPartition: ...

    @property
    def partition(self) -> LedPartition: ...

    @property
    def log(self) -> StateLog: ...

    @property
    def high_watermark(self) -> int: ...

    def append_own(self, records: memoryview, wall_ms: int) -> AppendedOffsets:
        """Append a batch from this broker's coordinator. Raises KafkaError or OSError."""
        ...

    def wait_for(self, offset: int) -> asyncio.Future[None]:
        """Return a future that is done when the high watermark reaches the offset; it fails if
        leadership is lost.
        """
        ...

    def fail(self, error: OSError) -> None:
        """Take the log directory and this replica offline after a disk error."""
        ...


class ShardClock(Protocol):
    """Two clocks: one for deadlines, one for timestamps whose age is computed later."""

    def monotonic_ms(self) -> int: ...

    def latest_wall_ms(self) -> int:
        """Return the wall time for a timestamp whose age will be computed later."""
        ...

    def trusted_wall_ms(self) -> int | None:
        """Return the wall time for removal by age; None while nothing may be removed by age."""
        ...
