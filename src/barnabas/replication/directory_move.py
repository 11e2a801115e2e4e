"""Decides on the next step while a replica is moved to another log directory (KIP-113).

This module is pure.

The future replica copies batches from the current replica, which continues to serve clients. It is
flushed at regular intervals, so the move does not have to wait long for the disk at the end. When
only the last few batches are missing, the future replica is prepared: it is flushed and entered in
the checkpoints of its directory. It then receives the remaining batches within a single turn of the
event loop, and replaces the current replica.

    StartAt*    the current replica begins after the end of the future replica
    RaiseStart  records were deleted from the start of the current replica
    Copy        the future replica lacks batches
    Flush       enough was copied since the last flush
    Prepare     only the last few batches are missing
    Switch      the future replica is prepared
"""

from __future__ import annotations

from typing import NamedTuple

TURN_BYTES = 64 * 1024
"""The maximum number of bytes that a step copies. A larger batch is copied on its own."""

_FLUSHED_BYTES = 4 * 1024 * 1024


class Bounds(NamedTuple):
    """The start offset and the end offset of a log."""

    log_start_offset: int
    log_end_offset: int


class Copy(NamedTuple):
    """This step appends the batches that start at this offset, and then calls `on_copied`."""

    offset: int


class StartAt(NamedTuple):
    """This step empties the future replica and makes it start at this offset."""

    offset: int


class RaiseStart(NamedTuple):
    """This step raises the log start offset of the future replica."""

    offset: int


class Flush(NamedTuple):
    """This step flushes the future replica, and then calls `on_flushed`."""


class Prepare(NamedTuple):
    """This step flushes the future replica, writes its directory's checkpoints, and then calls
    `on_prepared`.

    If only `on_flushed` is called instead, the step is repeated.
    """


class Switch(NamedTuple):
    """This step copies the remaining batches and replaces the current replica.

    If too many bytes remain for one turn, it calls `on_copied` instead.
    """


Step = Copy | StartAt | RaiseStart | Flush | Prepare | Switch
"""All types of steps. They must be distinguished by their type."""


class DirectoryMove:
    """Tracks a move. Tracking begins when the move or the broker starts."""

    __slots__ = ("_is_close", "_is_prepared", "_unflushed_bytes")

    def __init__(self) -> None:
        self._unflushed_bytes = 0
        self._is_close = False  # the last step reached what was then the end of the current replica
        self._is_prepared = False

    def next_step(self, current: Bounds, future: Bounds) -> Step:
        """Return the next step for replicas that have these offsets."""
        # Retention or DeleteRecords has overtaken the copy, so none of its records are served any
        # more.
        if future.log_end_offset < current.log_start_offset:
            self._is_close = False
            return StartAt(current.log_start_offset)
        if future.log_start_offset < current.log_start_offset:
            return RaiseStart(current.log_start_offset)
        # Flush often and in small steps, so that the last flush before the switch does not take
        # long.
        if self._unflushed_bytes >= _FLUSHED_BYTES:
            return Flush()
        if future.log_end_offset < current.log_end_offset and not self._is_close:
            return Copy(future.log_end_offset)
        # The replica must be in the checkpoints of the directory before the switch, because after a
        # crash, its recovery point and high watermark are read from there.
        return Switch() if self._is_prepared else Prepare()

    def on_copied(self, size_bytes: int, *, reached_end: bool) -> None:
        """Record the appended bytes, and whether they reached the end of the current replica."""
        self._unflushed_bytes += size_bytes
        self._is_close = reached_end

    def on_flushed(self) -> None:
        """Record that all bytes copied so far are on disk."""
        self._unflushed_bytes = 0
        self._is_close = False

    def on_prepared(self) -> None:
        """Record that the future replica has been flushed and is in the checkpoints."""
        self.on_flushed()
        self._is_prepared = True
