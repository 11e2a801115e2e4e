"""What the batches of a log say about its producers, told again: after a start or a truncation.

A snapshot holds the state before some offset; the batches from there on do the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.records.control import ABORT, read_marker
from barnabas.storage.producers import Producers
from barnabas.storage.segment import Located, Segment
from barnabas.storage.transactions import Aborted


def apply_batch(producers: Producers, segment: Segment, batch: Located) -> Aborted | None:
    """One batch of a producer; returns the transaction that was aborted by it."""
    header = batch.header
    if not header.is_control:
        # Also a coordinator's, which may lack a sequence: its transaction is one like any other.
        producers.apply(header, header.base_offset, header.max_timestamp)
        return None
    marker = read_marker(segment.read_batch(batch.position, header.size_bytes), 0, header)
    if marker is None:
        return None
    ended = producers.apply_marker(header.producer_id, header.producer_epoch, marker)
    if ended is None or marker.type != ABORT:
        return None
    return Aborted(header.producer_id, *ended)


def replay(producers: Producers, segments: Sequence[Segment], offset: int) -> None:
    """Apply the batches from `offset` on to the end of the last of these segments."""
    for i, segment in enumerate(segments):
        if i + 1 < len(segments) and segments[i + 1].base_offset <= offset:
            continue
        position = segment.locate(offset) if segment.size_bytes else None
        for batch in segment.headers(position) if position is not None else ():
            if batch.header.producer_id >= 0:
                apply_batch(producers, segment, batch)
        if i + 1 < len(segments):
            segment.release()
