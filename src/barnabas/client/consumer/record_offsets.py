"""Finds the offsets that contain a record, because some offsets do not.

A transaction marker occupies an offset, compaction removes records without renumbering the rest,
and a read_committed consumer does not see aborted records. The number of records in a range, or the
offset of the tenth record from the end, can only be found by reading the batches.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import Chunk, FetchedBytes
from barnabas.client.errors import Unreachable
from barnabas.types import TopicPartition

_POLL_MS: Final = 500
_SILENT_POLLS: Final = 120  # this many polls without records take a minute


class Span(NamedTuple):
    """A range of offsets in a partition."""

    begin: int
    end: int  # exclusive


async def record_offsets(
    consumer: Consumer, spans: Mapping[TopicPartition, Span], most: int | None = None
) -> dict[TopicPartition, array[int]]:
    """Return the offsets of the records in these ranges, at the consumer's isolation level.

    The assignment of the consumer is replaced, and is empty afterwards. A partition is no longer
    read once `most` records have been found, but more may be returned. Raises CorruptData, or
    Unreachable if nothing arrives for a minute.
    """
    found = {name: array("q") for name in spans}

    def take(name: TopicPartition, answer: FetchedBytes) -> bool:
        _take_offsets(found[name], name, answer, spans[name].end)
        return most is not None and len(found[name]) >= most

    await read_spans(consumer, spans, take)
    return found


async def read_spans(
    consumer: Consumer,
    spans: Mapping[TopicPartition, Span],
    take: Callable[[TopicPartition, FetchedBytes], bool],
) -> None:
    """Read these ranges and pass each fetch to `take`, which returns True to stop.

    The last fetch of a range may contain records after the end of the range. The assignment and the
    errors are the same as for `record_offsets`.
    """
    unread = {name: span for name, span in spans.items() if span.begin < span.end}
    consumer.assign([])  # drops the old assignment and its pauses
    consumer.assign(unread)
    for name, span in unread.items():
        consumer.seek(name, span.begin)
    silent = 0
    while unread:
        answers = await consumer.fetch_batches(_POLL_MS)
        silent = 0 if answers else silent + 1
        if silent > _SILENT_POLLS:
            names = ", ".join(sorted(map(str, unread)))
            raise Unreachable(f"no records of {names} arrived for a minute")
        enough = {name for name, answer in answers.items() if take(name, answer)}
        for name, span in list(unread.items()):
            # Compare the position, which advances even if the range has been deleted.
            if name in enough or await consumer.position(name) >= span.end:
                del unread[name]
                consumer.pause(name)
    consumer.assign([])


async def last_records(
    consumer: Consumer, spans: Mapping[TopicPartition, Span], count: int
) -> dict[TopicPartition, int]:
    """Return the offset of each range's `count`-th last record.

    If a range has fewer records, its start is returned. The partition is read backwards, in ranges
    that double in size until they contain enough records, so the cost of a long tail of aborted
    records is proportional to its length. The assignment and the errors are the same as for
    `record_offsets`.
    """
    starts: dict[TopicPartition, int] = {}
    missing = dict.fromkeys(spans, count)
    unread = dict(spans)
    width = count
    while unread:
        # If a range has no more offsets than wanted records, use the whole range without reading
        # it.
        starts |= {
            name: begin for name, (begin, end) in unread.items() if end - begin <= missing[name]
        }
        unread = {name: span for name, span in unread.items() if name not in starts}
        looked_at = {
            name: Span(max(begin, end - width), end) for name, (begin, end) in unread.items()
        }
        for name, offsets in (await record_offsets(consumer, looked_at)).items():
            if len(offsets) >= missing[name]:
                starts[name] = offsets[-missing[name]]
                del unread[name]
            else:
                missing[name] -= len(offsets)
                unread[name] = Span(unread[name].begin, looked_at[name].begin)
        width *= 2
    return starts


def _take_offsets(
    offsets: array[int], name: TopicPartition, answer: FetchedBytes, end: int
) -> None:
    chunk = Chunk(name, answer.offset, answer.records, answer.aborted)
    for records in chunk.lists(check_crcs=True):
        offsets.extend(record.offset for record in records if record.offset < end)
