"""Reads a topic's records for a page, within limits on time and number. Each request uses its own
consumer, which is closed at the end of the request. Only a limited number of consumers run at the
same time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final, NamedTuple

from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.client.consumer.record_offsets import Span
from barnabas.client.offsets import EARLIEST, LATEST
from barnabas.console.contents import WHOLE_BYTES, has_text, message
from barnabas.console.message_window import MessageWindow
from barnabas.console.problem import WebProblem, reason_of
from barnabas.console.shapes import Message, Messages
from barnabas.console.watch import ClusterWatch
from barnabas.errors import CorruptData, TopicAuthorizationFailed
from barnabas.types import TopicPartition

MOST_READERS: Final = 8
_SEARCH_S: Final = 5.0
_MOST_SCANNED: Final = 100_000
_MOST_PARTITIONS: Final = 1_000
_POLL_MS: Final = 250
_POLLED: Final = 500
_WIDER: Final = 8
_LATEST, _EARLIEST, _TIME, _OFFSET = "latest", "earliest", "time", "offset"
_BEFORE, _AFTER = "before", "after"
_BACKWARDS: Final = (_LATEST, _BEFORE)


class Wanted(NamedTuple):
    """Selects records of a topic."""

    topic: str
    partition: int | None
    """None selects all partitions."""
    start: str
    """"latest", "earliest", "time", "offset", "before" or "after"."""
    at: int
    """The offset, or the time in ms."""
    limit: int
    search: bytes
    offsets: tuple[int | None, ...] = ()
    """For "before" and "after": the offset in each partition, or None if the offset is not known.
    """


class _Budget:
    """Limits how much one request may read."""

    def __init__(self) -> None:
        self._until_s = time.monotonic() + _SEARCH_S
        self.scanned = 0

    @property
    def is_spent(self) -> bool:
        return self.scanned >= _MOST_SCANNED or time.monotonic() >= self._until_s


class MessageReader:
    """Reads records of the cluster watched by a `ClusterWatch`."""

    def __init__(self, watch: ClusterWatch) -> None:
        self._watch = watch
        self._readers = 0

    async def read(self, wanted: Wanted) -> Messages:
        """Return as many of the matching records as the limits allow."""
        names = self._names(wanted.topic, wanted.partition)
        with self._place():
            # A hung broker must not hold the request for longer than a search may take.
            async with asyncio.timeout(2 * _SEARCH_S):
                whole = await self._whole(names)
                async with self._consumer() as consumer:
                    if wanted.start in _BACKWARDS:
                        return await self._last(consumer, wanted, whole, len(names))
                    return await self._first(consumer, wanted, whole, len(names))

    def check(self, topic: str, partition: int | None) -> None:
        """Raise the `WebProblem` that `follow` would raise at the start."""
        self._names(topic, partition)
        with self._place():
            pass

    async def one(self, name: TopicPartition, offset: int) -> Message:
        """Return one record, truncated only above a megabyte. Raises a `WebProblem` if the record
        does not exist.
        """
        self._names(name.topic, name.partition)
        with self._place():
            async with asyncio.timeout(_SEARCH_S):
                whole = (await self._whole([name])).get(name)
                if whole is not None and whole.begin <= offset < whole.end:
                    async with self._consumer() as consumer:
                        spans = {name: Span(offset, offset + 1)}
                        found = [each async for each in _records(consumer, spans, _Budget())]
                        if found:
                            return message(found[0], WHOLE_BYTES)
        where = "unknown" if whole is None else f"{whole.begin} to {whole.end - 1}"
        raise WebProblem(
            404,
            f"{name} has no record at offset {offset}: its offsets are {where}, of which some "
            "belong to markers of transactions or to records that compaction has removed",
        )

    async def follow(
        self, topic: str, partition: int | None, search: bytes
    ) -> AsyncGenerator[Message | None, None]:
        """Yield each new record that contains the text, and yield None from time to time."""
        names = self._names(topic, partition)
        with self._place():
            whole = await self._whole(names)
            async with self._consumer() as consumer:
                consumer.assign(names)
                # The other partitions are read once they have a leader.
                for name, span in whole.items():
                    consumer.seek(name, span.end)
                yield None
                while True:
                    records = await consumer.poll(1_000, max_records=_POLLED)
                    for record in records:
                        if has_text(record, search):
                            yield message(record)
                    if not records:
                        yield None

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Count a new reader. Raises a `WebProblem` if there are too many readers."""
        if self._readers >= MOST_READERS:
            raise WebProblem(
                503,
                f"{MOST_READERS} pages read records at the moment, which is the limit: stop one "
                "of them, or try again",
            )
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[Consumer]:
        options: Mapping[str, Any] = self._watch.settings
        consumer = Consumer(
            self._watch.servers,
            **{
                **options,
                "auto_offset_reset": "latest",
                "allow_auto_create_topics": False,
                "max_partition_fetch_bytes": 262_144,
                "fetch_max_bytes": 2_097_152,
                "max_poll_records": _POLLED,
            },
        )
        async with consumer:
            yield consumer

    def _names(self, topic: str, partition: int | None) -> list[TopicPartition]:
        """Return the partitions to read.

        Raises a `WebProblem` if none of them exists in the topic.
        """
        known = self._watch.known.look.topics.get(topic)
        if known is None:
            raise unknown_topic(topic)
        if partition is None:
            return [TopicPartition(topic, n) for n in range(len(known.partitions))][
                :_MOST_PARTITIONS
            ]
        if partition >= len(known.partitions):
            last = len(known.partitions) - 1
            raise WebProblem(404, f"topic {topic!r} has partitions 0 to {last}, not {partition}")
        return [TopicPartition(topic, partition)]

    async def _whole(self, names: list[TopicPartition]) -> dict[TopicPartition, Span]:
        """Return the current start and end offset of each log that has a leader."""
        look, ends = self._watch.known.look, self._watch.log_ends
        begin, end = await asyncio.gather(
            ends.at(look, names, EARLIEST), ends.at(look, names, LATEST)
        )
        return {
            name: Span(begin[name], end[name]) for name in names if name in begin and name in end
        }

    async def _last(
        self,
        consumer: Consumer,
        wanted: Wanted,
        whole: Mapping[TopicPartition, Span],
        asked: int,
    ) -> Messages:
        """Read backwards, in increasingly wide ranges, until enough records are found."""
        window, budget = MessageWindow(wanted.limit, keeps_last=True), _Budget()
        if wanted.start == _BEFORE:
            ends = _given(wanted, whole)
            whole = {
                name: Span(span.begin, min(max(ends.get(name, span.end), span.begin), span.end))
                for name, span in whole.items()
            }
        lows = {name: span.end for name, span in whole.items()}
        older = dict(lows)
        width = wanted.limit
        while not window.is_full and not budget.is_spent:
            spans = {
                name: Span(max(span.begin, lows[name] - width), lows[name])
                for name, span in whole.items()
                if lows[name] > span.begin
            }
            if not spans:
                break
            read_to = await _read(consumer, wanted, spans, (window, budget))
            for name, span in spans.items():
                if read_to[name] >= span.end == older[name]:
                    older[name] = span.begin
            lows |= {name: span.begin for name, span in spans.items()}
            width *= _WIDER
        for partition, offset in window.dropped.items():
            name = TopicPartition(wanted.topic, partition)
            older[name] = max(older[name], offset + 1)
        return Messages(
            messages=window.messages(),
            scanned=budget.scanned,
            is_complete=not budget.is_spent and len(whole) == asked,
            next={str(name.partition): span.end for name, span in whole.items()},
            previous=_previous(older, whole),
        )

    async def _first(
        self,
        consumer: Consumer,
        wanted: Wanted,
        whole: Mapping[TopicPartition, Span],
        asked: int,
    ) -> Messages:
        """Read forwards until each partition has returned enough records or has been read to its
        end.
        """
        window, budget = MessageWindow(wanted.limit, keeps_last=False), _Budget()
        spans = await self._from(wanted, whole)
        read_to = await _read(consumer, wanted, spans, (window, budget))
        for partition, offset in window.dropped.items():
            name = TopicPartition(wanted.topic, partition)
            read_to[name] = min(read_to[name], offset)
        return Messages(
            messages=window.messages(),
            scanned=budget.scanned,
            is_complete=not budget.is_spent and len(whole) == asked,
            next={str(name.partition): offset for name, offset in read_to.items()},
            previous=_previous({name: span.begin for name, span in spans.items()}, whole),
        )

    async def _from(
        self, wanted: Wanted, whole: Mapping[TopicPartition, Span]
    ) -> dict[TopicPartition, Span]:
        if wanted.start == _EARLIEST:
            return dict(whole)
        if wanted.start == _TIME:
            look = self._watch.known.look
            found = await self._watch.log_ends.at(look, list(whole), wanted.at)
            begins = {name: found.get(name, -1) for name in whole}
            begins = {name: whole[name].end if at < 0 else at for name, at in begins.items()}
        elif wanted.start == _AFTER:
            begins = {name: span.begin for name, span in whole.items()} | _given(wanted, whole)
        else:
            begins = dict.fromkeys(whole, wanted.at)
        return {
            name: Span(min(max(begins[name], span.begin), span.end), span.end)
            for name, span in whole.items()
        }


def _given(wanted: Wanted, whole: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the requested offsets for the partitions that can be read."""
    first = wanted.partition or 0
    found = {}
    for name in whole:
        index = name.partition - first
        offset = wanted.offsets[index] if index < len(wanted.offsets) else None
        if offset is not None:
            found[name] = offset
    return found


def _previous(
    older: Mapping[TopicPartition, int], whole: Mapping[TopicPartition, Span]
) -> dict[str, int]:
    """Return the offsets below which older records end, or nothing if no partition has older
    records.
    """
    if all(offset <= whole[name].begin for name, offset in older.items()):
        return {}
    return {str(name.partition): offset for name, offset in older.items()}


def unknown_topic(name: str) -> WebProblem:
    """Return the problem for a topic that does not exist."""
    return WebProblem(404, f"there is no topic {name!r}, or this user may not Describe it")


async def _read(
    consumer: Consumer,
    wanted: Wanted,
    spans: Mapping[TopicPartition, Span],
    into: tuple[MessageWindow, _Budget],
) -> dict[TopicPartition, int]:
    """Add the records that contain the text, and return how far each partition was read.

    When reading forwards, a partition that has returned enough records is not read any further.
    """
    window, budget = into
    read_to = {name: span.begin for name, span in spans.items()}
    given = dict.fromkeys(spans, 0)
    limit = None if wanted.start in _BACKWARDS else wanted.limit
    async for record in _records(consumer, spans, budget, given, limit):
        name = record.topic_partition
        read_to[name] = record.offset + 1
        if has_text(record, wanted.search):
            window.add(record)
            given[name] += 1
    for name, span in spans.items():
        # There may be only markers between the last record and the end.
        if not budget.is_spent and (limit is None or given[name] < limit):
            read_to[name] = span.end
    return read_to


async def _records(
    consumer: Consumer,
    spans: Mapping[TopicPartition, Span],
    budget: _Budget,
    given: Mapping[TopicPartition, int] | None = None,
    limit: int | None = None,
) -> AsyncIterator[ConsumerRecord]:
    """Yield the records of these ranges until the budget is spent.

    A range ends early if `given` reports that the caller has received `limit` records from it.
    """
    unread = {name: span for name, span in spans.items() if span.begin < span.end}
    consumer.assign([])  # discards records buffered for an earlier range
    consumer.assign(unread)
    for name, span in unread.items():
        consumer.seek(name, span.begin)
    while unread and not budget.is_spent:
        for record in await _poll(consumer):
            name = record.topic_partition
            if name not in unread or record.offset >= unread[name].end:
                continue
            if given is not None and limit is not None and given[name] >= limit:
                continue
            budget.scanned += 1
            yield record
        for name, span in list(unread.items()):
            has_enough = given is not None and limit is not None and given[name] >= limit
            if has_enough or await consumer.position(name) >= span.end:
                del unread[name]
                consumer.pause(name)


async def _poll(consumer: Consumer) -> list[ConsumerRecord]:
    try:
        return await consumer.poll(_POLL_MS, max_records=_POLLED)
    except CorruptData as error:
        raise WebProblem(502, f"a record cannot be read: {error}") from error
    except TopicAuthorizationFailed as error:
        raise WebProblem(
            403, f"the console's user lacks the permission Read on the topic: {reason_of(error)}"
        ) from error
