"""Checks the batches that a follower has fetched from its leader.

The leader has already assigned offsets, leader epochs and timestamps, and has checked the sequence
numbers. Before a follower appends the batches, it only has to check that they are complete and that
they continue its own log. There may be gaps between offsets where compaction has removed a batch.
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
"""The lowest magic value for which the header contains the first offset of the batch."""


class Copy(NamedTuple):
    """Represents a batch from the leader that can be appended unchanged."""

    records: memoryview
    header: BatchHeader
    marker: Marker | None
    """The transaction marker in the batch, or None if the batch contains no marker."""


UNKNOWN_BOUND = 2**63 - 1
"""Used instead of the leader's high watermark if that is unknown."""


def check_copies(
    records: memoryview,
    log_end_offset: int,
    latest_epoch: int,
    high_watermark: int = UNKNOWN_BOUND,
    *,
    is_empty: bool = False,
) -> list[Copy]:
    """Return the complete batches of a fetch response. The follower fetches a truncated batch
    again.

    Raises CorruptData unless all batches are valid, have increasing offsets and epochs, and begin
    at or above the log end. If the follower's log `is_empty`, the first batch may begin below the
    log end, because after DeleteRecords the leader's log may start in the middle of a batch.

    The checksum does not cover the base offset, and compaction leaves gaps below the leader's
    `high_watermark`. If the last batch comes after a gap, it is therefore fetched again, together
    with the batch after it, which may show that the offset is damaged.
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
        # A leader never sends decreasing offsets or records that are already in the log.
        if header.last_offset < next_offset or header.last_offset_delta < 0:
            raise CorruptData(
                f"a batch ends at {header.last_offset}, but the log ends at {next_offset}"
            )
        if first_offset < next_offset and (copies or not is_empty or first_offset < 0):
            raise CorruptData(
                f"a batch starts at {first_offset}, but the log ends at {next_offset}"
            )
        # The leader epochs in a log never decrease (KIP-101). Messages of magic 0 and 1 have no
        # leader epoch.
        if NO_LEADER_EPOCH < header.partition_leader_epoch < epoch:
            raise CorruptData(
                f"the batch at {first_offset} has leader epoch {header.partition_leader_epoch}, "
                f"older than epoch {epoch} before it"
            )
        if not verify_crc(records, position, header):
            raise CorruptData(f"the batch at {first_offset} fails its checksum")
        marker = None
        # Transaction markers have a producer id; the control batches of KRaft do not.
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
