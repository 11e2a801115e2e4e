"""Checks the batches that a follower fetches from its leader.

The leader has assigned offsets, leader epochs and timestamps, and checked sequence numbers. Before
a follower appends batches, it only checks that they are complete and continue its own log. Offsets
may have gaps where compaction removed a batch.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.batch import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_ID,
    BatchHeader,
    iterate_batches,
    verify_crc,
)
from barnabas.records.control_records import Marker, read_marker

_WITH_BASE_OFFSET = 2
"""The lowest magic whose header contains the batch's first offset."""


class Copy(NamedTuple):
    """A batch from the leader, ready to be appended unchanged."""

    records: memoryview
    header: BatchHeader
    marker: Marker | None
    """The transaction marker that the batch contains, if any."""


UNKNOWN_BOUND = 2**63 - 1
"""The leader's high watermark if it is unknown."""


def check_copies(
    records: memoryview,
    log_end_offset: int,
    latest_epoch: int,
    high_watermark: int = UNKNOWN_BOUND,
    *,
    is_empty: bool = False,
) -> list[Copy]:
    """Return the whole batches of a fetch response. A truncated batch is fetched again.

    Raises CorruptData unless all are valid, ascend in offset and epoch, and begin at the log end or
    above it. The first may begin below the log end if the follower's log `is_empty`: after
    DeleteRecords the leader's log may start in the middle of a batch.

    No checksum covers a base offset, and compaction leaves gaps below the leader's
    `high_watermark`. A last batch after a gap is therefore fetched again: the batch that then
    follows it may show that its offset is damaged.
    """
    copies: list[Copy] = []
    next_offset, epoch, is_behind_gap = log_end_offset, latest_epoch, False
    for position, header in iterate_batches(records):
        first_offset = header.base_offset
        if first_offset > max(next_offset, high_watermark) and header.magic == _WITH_BASE_OFFSET:
            raise CorruptData(
                f"a batch starts at {first_offset}, but the log ends at {next_offset} and the "
                f"leader's high watermark is {high_watermark}"
            )
        is_behind_gap = first_offset > next_offset and header.magic == _WITH_BASE_OFFSET
        # No leader sends decreasing offsets, or records that the log already contains.
        if header.last_offset < next_offset or header.last_offset_delta < 0:
            raise CorruptData(
                f"a batch ends at {header.last_offset}, but the log ends at {next_offset}"
            )
        if first_offset < next_offset and (copies or not is_empty or first_offset < 0):
            raise CorruptData(
                f"a batch starts at {first_offset}, but the log ends at {next_offset}"
            )
        # Leader epochs never decrease in a log (KIP-101). Messages of magic 0 and 1 have none.
        if NO_LEADER_EPOCH < header.partition_leader_epoch < epoch:
            raise CorruptData(
                f"the batch at {first_offset} has leader epoch {header.partition_leader_epoch}, "
                f"older than epoch {epoch} before it"
            )
        if not verify_crc(records, position, header):
            raise CorruptData(f"the batch at {first_offset} fails its checksum")
        marker = None
        # KRaft's control batches have no producer; transaction markers have one.
        if header.is_control and header.producer_id != NO_PRODUCER_ID:
            marker = read_marker(records, position, header)
        copies.append(Copy(records[position : position + header.size_bytes], header, marker))
        next_offset = header.last_offset + 1
        epoch = max(epoch, header.partition_leader_epoch)
    if is_behind_gap and len(copies) > 1 and next_offset != high_watermark:
        copies.pop()
    if len(records) and not copies:
        raise CorruptData(f"no complete batch in {len(records)} bytes from the leader")
    return copies
