"""Reads the batches of a segment one by one and verifies their checksums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.batch import HEADER_BYTES, BatchHeader, read_header, verify_crc
from barnabas.storage.segment import LOG_SUFFIX, Segment


class Stored(NamedTuple):
    """Represents a whole batch, which is stored in `data[at:at + header.size_bytes]`."""

    header: BatchHeader
    data: bytes
    at: int

    @property
    def raw(self) -> bytes:
        return self.data[self.at : self.at + self.header.size_bytes]


def stored_batches(
    segment: Segment, position: int, read_bytes: int, bound: int
) -> Iterator[Stored]:
    """Yield the batches, starting at `position`, which must be the start of a batch.

    If a batch is damaged, raises CorruptData with its position.

    The checksum does not cover the base offset. If a base offset was damaged, an old record could
    become the latest one of its key. A batch is therefore rejected if its offsets overlap with the
    batches before and after it or exceed the segment's `bound`.
    """
    next_offset = segment.base_offset
    file = segment.open_file()
    end = segment.size_bytes
    wanted = max(read_bytes, HEADER_BYTES)
    while position < end:
        data = file.pread(min(wanted, end - position), position)
        wanted = max(read_bytes, HEADER_BYTES)
        at = 0
        while at < len(data):
            # The header is split between two reads, so start the next read at the header.
            if len(data) - at < HEADER_BYTES and position + len(data) < end:
                break
            try:
                header = read_header(data, at)
            except CorruptData as cause:
                raise CorruptData(f"{_place(segment, position + at)}: {cause}") from cause
            size = header.size_bytes
            if size > end - position - at:
                raise CorruptData(f"{_place(segment, position + at)}: the batch is truncated")
            if size > len(data) - at:
                # The batch is larger than one read, so read all of it next.
                wanted = max(wanted, size)
                break
            if not verify_crc(data, at, header):
                raise CorruptData(
                    f"{_place(segment, position + at)}: the batch at offset {header.base_offset} "
                    "fails its checksum"
                )
            if not next_offset <= header.base_offset <= header.last_offset < bound:
                raise CorruptData(
                    f"{_place(segment, position + at)}: the batch has offset {header.base_offset}, "
                    f"where {next_offset} to {bound - 1} are possible"
                )
            next_offset = header.last_offset + 1
            yield Stored(header, data, at)
            at += size
        if not data:
            raise CorruptData(f"{_place(segment, position)}: the file ends here")
        position += at


def _place(segment: Segment, position: int) -> str:
    return f"{segment.path(LOG_SUFFIX)}, byte {position}"
