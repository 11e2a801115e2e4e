"""Decides the next step in moving a replica to another log directory (KIP-113). Pure.

The future replica copies batches from the current one, which continues to serve clients. It is
flushed periodically, so the end of the move never waits long for the disk. Once only the last few
batches are missing, it is prepared: flushed, and entered in its directory's checkpoints. It then
receives the rest within one turn of the event loop and replaces the current replica.

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
    """A step: empty the future replica and start it at this offset."""

    offset: int


class RaiseStart(NamedTuple):
    """A step: raise the log start offset of the future replica."""

    offset: int


class Flush(NamedTuple):
    """A step: flush the future replica, and call `on_flushed`."""


class Prepare(NamedTuple):
    """A step: flush the future replica, write its directory's checkpoints, call `on_prepared`.

    Calling only `on_flushed` instead repeats this step.
    """


class Switch(NamedTuple):
    """A step: copy the rest and switch, or call `on_copied` if the rest exceeds a turn."""


Step = Copy | StartAt | RaiseStart | Flush | Prepare | Switch
"""The steps, distinguished only by type."""


class DirectoryMove:
    """A move, tracked from its start or the broker's."""

    __slots__ = ("_is_close", "_is_prepared", "_unflushed_bytes")

    def __init__(self) -> None:
        self._unflushed_bytes = 0
        self._is_close = False  # the last step reached what was then the end of the current replica
        self._is_prepared = False

    def next_step(self, current: Bounds, future: Bounds) -> Step:
        """Return the next step, given the present state of the replicas."""
        # Retention or DeleteRecords has overtaken the copy: none of its records are served any
        # more.
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
        # The directory's checkpoints must list the replica before the switch: a start after a crash
        # reads its recovery point and high watermark from them.
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
