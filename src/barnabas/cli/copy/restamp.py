"""Turns fetched batches into batches for another cluster, if possible without decoding them. Pure.

A batch whose offsets have no gaps keeps its records as they are, compressed or not; only its header
is replaced. A broker requires consecutive offsets in a produced batch and no log-append time,
so other batches are encoded again, as are messages in formats older than magic 2. Small batches are
joined, because a Produce request carries only one batch for each partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.client.consumer.fetched import Chunk
from barnabas.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    read_header,
    transactional_header,
)
from barnabas.records.record import BatchBuilder, Record, record_size_bound, records_of
from barnabas.types import Part

_SMALL_BYTES, _FEW_RECORDS = 4 * 1024, 16
_JOINED_BYTES = 256 * 1024


class Draft(NamedTuple):
    """A batch that lacks its producer. `offsets` are those of its records in the source."""

    header: BatchHeader
    body: memoryview | bytes
    offsets: Sequence[int]

    @property
    def size_bytes(self) -> int:
        return HEADER_BYTES + len(self.body)

    def seal(self, producer_id: int, producer_epoch: int, sequence: int) -> list[Part]:
        """Return the batch of a transactional producer."""
        header, body = self.header, self.body
        return [transactional_header(header, body, producer_id, producer_epoch, sequence), body]


def drafts_of(chunk: Chunk) -> Iterator[Draft]:
    """Yield the batches of a chunk without markers and aborted records. Raises CorruptData."""
    joined: _Joined | None = None
    for position, header in chunk.visible_batches(check_crcs=True):
        if _is_kept_whole(header, chunk.offset):
            if joined is not None:
                yield joined.draft()
                joined = None
            body = chunk.records[position + HEADER_BYTES : position + header.size_bytes]
            yield Draft(header, body, range(header.base_offset, header.last_offset + 1))
            continue
        for record in records_of(chunk.records, position, header):
            if record.offset < chunk.offset:
                continue
            if joined is not None and not joined.has_room(record, header.codec):
                yield joined.draft()
                joined = None
            joined = joined or _Joined(header.codec)
            joined.append(record)
    if joined is not None:
        yield joined.draft()


def _is_kept_whole(header: BatchHeader, from_offset: int) -> bool:
    return (
        header.magic == 2
        and (header.size_bytes > _SMALL_BYTES or header.record_count > _FEW_RECORDS)
        and not header.has_log_append_time
        and header.base_offset >= from_offset
        # With as many records as offsets, there is no gap.
        and header.record_count == header.last_offset_delta + 1
    )


class _Joined:
    """Encodes records of several batches as one."""

    def __init__(self, codec: int) -> None:
        self._builder = BatchBuilder(codec, is_transactional=True)
        self._offsets: list[int] = []

    def has_room(self, record: Record, codec: int) -> bool:
        size = record_size_bound(record.key, record.value, record.headers)
        return codec == self._builder.codec and self._builder.size_bytes + size <= _JOINED_BYTES

    def append(self, record: Record) -> None:
        self._builder.append(record.timestamp, record.key, record.value, record.headers)
        self._offsets.append(record.offset)

    def draft(self) -> Draft:
        built = self._builder.build()
        return Draft(read_header(built), memoryview(built)[HEADER_BYTES:], self._offsets)
