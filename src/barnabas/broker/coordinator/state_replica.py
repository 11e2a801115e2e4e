"""Defines the interfaces that a coordinator's shard uses for a replica of its topic and for a
clock.

They are implemented by `broker.partitions` and `broker.runtime`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from barnabas.types import TopicPartition


class AppendedOffsets(Protocol):
    """The offsets of a batch that has been appended."""

    @property
    def base_offset(self) -> int: ...

    @property
    def last_offset(self) -> int: ...


class LogSlice(Protocol):
    """A range of bytes in a log."""

    def read(self) -> bytes:
        """Return the bytes. This may block while the disk is read."""
        ...

    def release(self) -> None:
        """Release the bytes once they are no longer needed."""
        ...


class StateLog(Protocol):
    """An internal topic partition's log."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    def read(self, offset: int, max_bytes: int, end_offset: int) -> Sequence[LogSlice]:
        """Read whole batches starting at `offset`. The result is empty if compaction has removed
        them.
        """
        ...


class LedPartition(Protocol):
    """The machine of a partition that this broker leads."""

    @property
    def leader_epoch(self) -> int: ...

    def check_acks_all(self) -> None:
        """Raise NotEnoughReplicas if the ISR is smaller than the minimum."""
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
        """Append a batch written by this broker's coordinator. Raises KafkaError or OSError."""
        ...

    def wait_for(self, offset: int) -> asyncio.Future[None]:
        """Return a future that is done when the high watermark has reached the offset. It fails if
        this broker loses the leadership.
        """
        ...

    def fail(self, error: OSError) -> None:
        """Take this replica and its log directory offline after a disk error."""
        ...


class ShardClock(Protocol):
    """Provides one clock for deadlines, and another for timestamps whose age will be computed
    later.
    """

    def monotonic_ms(self) -> int: ...

    def latest_wall_ms(self) -> int:
        """Return the wall time to store as a timestamp whose age will be computed later."""
        ...

    def trusted_wall_ms(self) -> int | None:
        """Return the wall time to use when removing by age, or None if nothing may be removed by
        age yet.
        """
        ...
