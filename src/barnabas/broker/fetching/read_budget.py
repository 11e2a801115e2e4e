"""The bytes that one answer may hold, shared out among its partitions in the order of reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.fetching.row import Row
from barnabas.protocol.messages.fetch import FetchPartition
from barnabas.types import FileSlice

if TYPE_CHECKING:
    from barnabas.storage.log import Log


class ReadBudget:
    """What is left of an answer's limit, and what has to be read from the disk beforehand."""

    __slots__ = ("cold", "is_warmed", "left_bytes", "taken_bytes")

    def __init__(self, max_bytes: int, is_warmed: bool) -> None:
        self.left_bytes = max_bytes
        self.taken_bytes = 0
        self.cold: list[tuple[Log, int, int]] = []
        """Reads, from an offset and of how many bytes, that a thread has to warm first."""
        self.is_warmed = is_warmed
        """Whether a thread has done so: what is cold all the same is read."""

    def read(
        self, row: Row, log: Log, wanted: FetchPartition, bound: int
    ) -> list[FileSlice] | None:
        """Put whole batches below `bound` into a row; None if their pages are cold.

        A first batch larger than every limit is returned all the same, or its reader would never
        get past it (KIP-74). Raises OffsetOutOfRange, and what a read of a file raises.
        """
        offset = wanted.fetch_offset
        max_bytes = min(self.left_bytes, wanted.partition_max_bytes)
        if (
            not self.is_warmed
            and not log.is_failed
            and log.log_start_offset <= offset < log.log_end_offset
            and log.is_cold(offset, max_bytes)
        ):
            self.cold.append((log, offset, max_bytes))
            return None
        slices = log.read(offset, max_bytes, bound, self.taken_bytes == 0)
        row.data.records = slices
        row.size_bytes = size_bytes = sum([part.size for part in slices])
        self.taken_bytes += size_bytes
        self.left_bytes -= size_bytes
        return slices
