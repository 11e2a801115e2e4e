"""Rebuilds the producer state of a log from its batches after a start or a truncation.

A snapshot contains the state below an offset, and the batches from that offset on are replayed. The
checksum of each batch is verified first. Otherwise, damaged producer fields would get into the next
snapshot.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from struct import Struct

from barnabas.errors import CorruptData
from barnabas.records.batch import (
    CHECKED_FROM,
    HEADER_BYTES,
    LOG_OVERHEAD_BYTES,
    BatchHeader,
    read_header,
)
from barnabas.records.control_records import ABORT, read_marker
from barnabas.records.crc32c import crc32c
from barnabas.storage.files import Files
from barnabas.storage.producers import Producers
from barnabas.storage.segment import LOG_SUFFIX, Located, Segment
from barnabas.storage.snapshot import load_newest_snapshot
from barnabas.storage.transaction_index import Aborted

_LOOK = Struct(">8xi4xbI22xq")
"""Unpacks the batch length, the magic, the checksum and the producer id. Most batches need no other
fields.
"""
_MAGIC = 2
_WINDOW_BYTES = 64 * 1024
_BATCHES_PER_STEP = 300  # this takes a few ms if every batch has a producer


def apply_batch(producers: Producers, segment: Segment, batch: Located) -> Aborted | None:
    """Apply a producer's batch, and return the transaction that the batch has aborted, if any."""
    header = batch.header
    if not header.is_control:
        # A batch from a coordinator may have no sequence number, but it is still part of a
        # transaction.
        producers.apply(header, header.base_offset, header.max_timestamp)
        return None
    marker = read_marker(segment.read_batch(batch.position, header.size_bytes), 0, header)
    if marker is None:
        return None
    ended = producers.apply_marker(header.producer_id, header.producer_epoch, marker)
    if ended is None or marker.type != ABORT:
        return None
    return Aborted(header.producer_id, *ended)


def replay(producers: Producers, segments: Sequence[Segment], offset: int, end_offset: int) -> None:
    """Apply the batches from `offset` to `end_offset`, which is the end of the last segment.

    Raises CorruptData if a header is damaged.
    """
    for _ in replay_in_steps(producers, segments, offset, end_offset):
        pass


def replay_in_steps(
    producers: Producers, segments: Sequence[Segment], offset: int, end_offset: int
) -> Iterator[None]:
    """Do the same as `replay` in steps. At each `yield`, other tasks may run and close files."""
    if offset >= end_offset:
        return  # a snapshot covers all segments, so any damage in them does not matter
    for i, segment in enumerate(segments):
        # The snapshot already covers this whole segment.
        if i + 1 < len(segments) and segments[i + 1].base_offset <= offset:
            continue
        position = segment.locate(offset) if segment.size_bytes else None
        while position is not None and position < segment.size_bytes:
            position = _apply_some(producers, segment, position)
            yield
        if i + 1 < len(segments):
            segment.release()


def find_in_steps(
    files: Files,
    directory: Path,
    segments: Sequence[Segment],
    snapshots: Sequence[int],
    end_offset: int,
) -> Generator[None, None, Producers]:
    """Find the producers at the end of these segments, in steps as in `replay_in_steps`.

    The search starts from the newest of the `snapshots`, which are offsets in ascending order.
    """
    found = load_newest_snapshot(files, directory, snapshots)
    producers, offset = found or (Producers(), segments[0].base_offset)
    yield from replay_in_steps(producers, segments, offset, end_offset)
    return producers


def _apply_some(producers: Producers, segment: Segment, position: int) -> int:
    """Apply all batches that begin in one window, and return the position of the batch after them.

    Raises CorruptData if a batch is damaged.
    """
    window = segment.read_batch(position, min(_WINDOW_BYTES, segment.size_bytes - position))
    is_last = position + len(window) >= segment.size_bytes
    view = memoryview(window)
    at = 0
    for _ in range(_BATCHES_PER_STEP):
        left = len(window) - at
        if left <= 0 or (left < HEADER_BYTES and not is_last):
            break
        header: BatchHeader | None = None
        length = magic = producer_id = crc = 0
        if left >= _LOOK.size:
            length, magic, crc, producer_id = _LOOK.unpack_from(window, at)
        # Old messages have no producer id, but their format determines where the next message
        # begins.
        if magic < _MAGIC or length < HEADER_BYTES - LOG_OVERHEAD_BYTES:
            header = read_header(window, at)  # the batch is in an old format or damaged
            length, producer_id = header.batch_length, header.producer_id
        else:
            end = at + length + LOG_OVERHEAD_BYTES
            checked = view[at + CHECKED_FROM : end]
            if end > len(window):  # the batch is longer than the window
                checked = memoryview(segment.read_batch(position + at, end - at))[CHECKED_FROM:]
            if crc32c(checked) != crc:
                raise CorruptData(
                    f"{segment.path(LOG_SUFFIX)}: the batch at byte {position + at} does not match "
                    "its checksum"
                )
        if producer_id >= 0:
            header = header or read_header(window, at)
            apply_batch(producers, segment, Located(position + at, header))
        at += length + LOG_OVERHEAD_BYTES
    return position + at
