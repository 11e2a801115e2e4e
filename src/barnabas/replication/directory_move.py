"""Decides the next step in moving a replica to another log directory (KIP-113). Pure.

The future replica copies batches from the current one, which continues to serve clients. It is
flushed from time to time, so that the end of the move never waits long for the disk. Once it has
all but the last few batches, it is prepared: it is flushed and entered in the checkpoints of its
directory. Then it gets the rest within one turn of the event loop and replaces the current replica.

    StartAt*    the current replica begins after the end of the future one
    RaiseStart  records were deleted
    Copy        the next batches
    Flush       enough was copied since the last flush
    Prepare     it is close to the end
    Switch      copy the rest and switch, if the rest is small; else continue
"""

from __future__ import annotations

from typing import NamedTuple

TURN_BYTES = 64 * 1024
"""The maximum number of bytes copied in one step, unless the first batch is larger."""

_FLUSHED_BYTES = 4 * 1024 * 1024


class Bounds(NamedTuple):
    """The start and end offsets of a log."""

    log_start_offset: int
    log_end_offset: int


class Copy(NamedTuple):
    """A step: append the batches from this offset on, and call `on_copied`."""

    offset: int


class StartAt(NamedTuple):
    """A step: empty the future replica, which then starts at this offset."""

    offset: int


class RaiseStart(NamedTuple):
    """A step: raise the log start offset of the future replica."""

    offset: int


class Flush(NamedTuple):
    """A step: flush the future replica, and call `on_flushed`."""


class Prepare(NamedTuple):
    """A step: flush the future replica, write its directory's checkpoints, call `on_prepared`.

    Alternatively, call only `on_flushed`, to have this step repeated.
    """


class Switch(NamedTuple):
    """A step: copy the rest and switch, or call `on_copied` if the rest exceeds a turn."""


Step = Copy | StartAt | RaiseStart | Flush | Prepare | Switch
"""The steps, which differ only by type."""


class DirectoryMove:
    """A move, from its start or from the broker's start."""

    __slots__ = ("_is_close", "_is_prepared", "_unflushed_bytes")

    def __init__(self) -> None:
        self._unflushed_bytes = 0
        self._is_close = False  # the last step reached the end of the current replica at that time
        self._is_prepared = False

    def next_step(self, current: Bounds, future: Bounds) -> Step:
        """Return the next step for the replicas in their present state."""
        # Retention or DeleteRecords has overtaken the copy, so nothing that it contains is served
        # now.
        if future.log_end_offset < current.log_start_offset:
            self._is_close = False
            return StartAt(current.log_start_offset)
        if future.log_start_offset < current.log_start_offset:
            return RaiseStart(current.log_start_offset)
        # Flush in small steps, so that the flush before the switch is short.
        if self._unflushed_bytes >= _FLUSHED_BYTES:
            return Flush()
        if future.log_end_offset < current.log_end_offset and not self._is_close:
            return Copy(future.log_end_offset)
        # The checkpoints of the directory must list the replica before the switch, so that a start
        # after a crash finds its recovery point and high watermark there.
        return Switch() if self._is_prepared else Prepare()

    def on_copied(self, size_bytes: int, *, reached_end: bool) -> None:
        """Note the appended bytes, and whether they reached the end of the current replica."""
        self._unflushed_bytes += size_bytes
        self._is_close = reached_end

    def on_flushed(self) -> None:
        """Note that all bytes copied so far are on disk."""
        self._unflushed_bytes = 0
        self._is_close = False

    def on_prepared(self) -> None:
        """Note that the future replica was flushed and is in the checkpoints."""
        self.on_flushed()
        self._is_prepared = True
