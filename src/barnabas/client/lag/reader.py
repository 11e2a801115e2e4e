"""Reads a limited number of a group's unread records, to count them and to find out their age."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import Chunk, FetchedBytes
from barnabas.client.consumer.record_offsets import Span, read_spans
from barnabas.client.lag.sample import Unread
from barnabas.errors import BarnabasError, in_one_line
from barnabas.types import TopicPartition


class UnreadReader:
    """Reads ranges that start at group positions. Each call continues where the last one ended."""

    def __init__(self, consumer: Consumer, most: int) -> None:
        """`consumer` must start at the earliest record if its offset is out of range.

        A range that appears to contain more than `most` records is not counted in full.
        """
        self._consumer = consumer
        self._most = most

    async def read_within(
        self,
        ranges: Mapping[TopicPartition, Span],
        found: dict[TopicPartition, Unread],
        seconds: float,
    ) -> dict[TopicPartition, str]:
        """Continue reading the ranges where `found` ends. Returns the errors, by range.

        What was read before an error or the time limit is kept in `found`.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._read(ranges, found)
        except TimeoutError:
            reason = f"reading the records took longer than {seconds:.0f} s"
            return dict.fromkeys(self._unfinished(ranges, found), reason)

    async def _read(
        self, ranges: Mapping[TopicPartition, Span], found: dict[TopicPartition, Unread]
    ) -> dict[TopicPartition, str]:
        spans = self._unfinished(ranges, found)
        if not spans:
            return {}

        def take(name: TopicPartition, answer: FetchedBytes) -> bool:
            found[name] = _continued(found.get(name), name, answer, spans[name].end)
            return self._is_long(found[name], ranges[name])

        try:
            await read_spans(self._consumer, spans, take)
        except BarnabasError as error:
            topics = sorted({name.topic for name in spans})
            if len(topics) == 1:
                return dict.fromkeys(self._unfinished(ranges, found), in_one_line(error))
            errors: dict[TopicPartition, str] = {}
            # One topic's error, such as a missing permission, must not hide the other topics.
            for topic in topics:
                own = {name: span for name, span in ranges.items() if name.topic == topic}
                errors |= await self._read(own, found)
            return errors
        return {}

    def _unfinished(
        self, ranges: Mapping[TopicPartition, Span], found: Mapping[TopicPartition, Unread]
    ) -> dict[TopicPartition, Span]:
        """Return the part of each range that has not been read yet."""
        unfinished = {}
        for name, (begin, end) in ranges.items():
            before = found.get(name)
            if before is not None:
                begin = max(before.read_to, begin)
            if begin < end and (before is None or not self._is_long(before, ranges[name])):
                unfinished[name] = Span(begin, end)
        return unfinished

    def _is_long(self, unread: Unread, span: Span) -> bool:
        """Return whether the range contains more than `most` records, estimated from its start."""
        read = max(unread.read_to - span.begin, 1)
        return unread.records * (span.end - span.begin) > self._most * read


def _continued(
    before: Unread | None, name: TopicPartition, answer: FetchedBytes, end: int
) -> Unread:
    """Add another fetch of a range, up to `end`, to the facts that are already known."""
    records, first_ms = (0, -1) if before is None else (before.records, before.first_ms)
    chunk = Chunk(name, answer.offset, answer.records, answer.aborted, answer.high_watermark)
    for batch in chunk.lists(check_crcs=True):
        within = [record for record in batch if record.offset < end]
        if within and not records:
            first_ms = within[0].timestamp_ms
        records += len(within)
    return Unread(records, min(answer.next_offset, end), first_ms, answer.last_stable_offset)
