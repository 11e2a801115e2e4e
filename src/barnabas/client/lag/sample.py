"""Defines a sample of a group's lag in one partition, as shown by a single observation. Pure.

The number of offsets is not the number of records, because transaction markers occupy offsets,
compaction removes records without renumbering the rest, and aborted records are invisible to a
read_committed consumer. Only the batches themselves show how many records a range contains. An
observation reads a limited number of batches, so the number of unread records has a lower and an
upper bound, which are equal once everything has been read.
"""

from __future__ import annotations

from typing import NamedTuple


class Unread(NamedTuple):
    """The part that has been read of a range that starts at the position of a group."""

    records: int  # the number of records found
    read_to: int  # the range was read up to this offset
    first_ms: int = -1  # the first record's time; -1: no record was found, or it has no time
    last_stable: int = -1  # last stable offset of the partition; -1: unknown


class Sample(NamedTuple):
    """A group's position in a partition and the state of the partition's log, at one moment."""

    at_ms: int  # time by a monotonic clock
    wall_ms: int  # time by the wall clock, to compare with the times of records
    committed: int | None  # None: the group has committed no offset
    start: int
    end: int | None  # None: unknown, because the partition has no leader
    unread: Unread | None = None  # None: nothing was read
    member: str | None = None  # the member to which the partition is assigned
    unassigned_because: str = ""  # why the owner is unknown

    @property
    def position(self) -> int:
        """The offset from which the group will continue."""
        # Records below the start were deleted. Without a commit, everything counts.
        return self.start if self.committed is None else max(self.committed, self.start)

    @property
    def offsets(self) -> int:
        """The number of offsets from the group's position to the end of the log."""
        return 0 if self.end is None else max(self.end - self.position, 0)

    @property
    def least(self) -> int:
        """The minimum number of records that the group has to read."""
        return 0 if self.unread is None else self.unread.records

    @property
    def most(self) -> int:
        """The maximum number of records that the group may have to read."""
        if self.unread is None or self.end is None:
            return self.offsets
        return self.unread.records + max(self.end - max(self.unread.read_to, self.position), 0)

    @property
    def lost(self) -> int:
        """The number of offsets that were deleted before the group had read them."""
        return 0 if self.committed is None else max(self.start - self.committed, 0)
