"""Reads a limited number of the records that a group has not read yet, to count and date them."""

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
    """Reads ranges that start at groups' positions; a later call continues an earlier one."""

    def __init__(self, consumer: Consumer, most: int) -> None:
        """`consumer` must begin at the earliest record when its offset is out of range; `most` is
        the number of records of a range after which counting ends.
        """
        self._consumer = consumer
        self._most = most

    async def read(
        self, ranges: Mapping[TopicPartition, Span], found: dict[TopicPartition, Unread]
    ) -> str:
        """Continue what was `found` of each range, and return what went wrong, or "".

        `found` keeps what was read before an error, or before the caller's time was up.
        """
        spans = {
            name: Span(max(found[name].read_to, span.begin) if name in found else span.begin, end)
            for name, span in ranges.items()
            for end in [span.end]
            if name not in found or found[name].records < self._most
        }
        if not spans:
            return ""

        def take(name: TopicPartition, answer: FetchedBytes) -> bool:
            found[name] = _continued(found.get(name), name, answer, spans[name].end)
            return found[name].records >= self._most

        try:
            await read_spans(self._consumer, spans, take)
        except BarnabasError as error:
            topics = {name.topic for name in spans}
            # An error of one topic, such as that it may not be read, must not hide the others.
            if len(topics) == 1:
                return in_one_line(error)
            errors = [
                await self.read({n: s for n, s in ranges.items() if n.topic == topic}, found)
                for topic in sorted(topics)
            ]
            return next(filter(None, errors), "")
        return ""

    async def read_within(
        self,
        ranges: Mapping[TopicPartition, Span],
        found: dict[TopicPartition, Unread],
        seconds: float,
    ) -> str:
        """Do as `read` does, but give up after this time."""
        try:
            async with asyncio.timeout(seconds):
                return await self.read(ranges, found)
        except TimeoutError:
            return f"reading the records took longer than {seconds:.0f} s"


def _continued(
    before: Unread | None, name: TopicPartition, answer: FetchedBytes, end: int
) -> Unread:
    """Return what is known after another fetch of a range up to `end`."""
    records, first_ms = (0, -1) if before is None else (before.records, before.first_ms)
    chunk = Chunk(name, answer.offset, answer.records, answer.aborted, answer.high_watermark)
    for batch in chunk.lists(check_crcs=True):
        within = [record for record in batch if record.offset < end]
        if within and not records:
            first_ms = within[0].timestamp_ms
        records += len(within)
    return Unread(records, min(answer.next_offset, end), first_ms, answer.last_stable_offset)
