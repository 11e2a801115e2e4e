"""Keeps the first or the last records found by a search. Pure.

A window holds a limited number of records, so memory use is bounded however many records are read.
"""

from __future__ import annotations

import heapq
from typing import Final

from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.console.contents import message
from barnabas.console.shapes import Message

_Key = tuple[int, int, int]
_MOST_BYTES: Final = 32 * 1024 * 1024


class MessageWindow:
    """Keeps only the `limit` earliest or latest of all added records, by timestamp."""

    def __init__(self, limit: int, *, keeps_last: bool) -> None:
        self._limit = limit
        self._sign = 1 if keeps_last else -1
        self._heap: list[tuple[_Key, Message]] = []
        self._bytes = 0
        self.dropped: dict[int, int] = {}
        """For each partition with records that were added but not kept, the offset of the dropped
        record that is closest to the records that are kept.
        """

    @property
    def is_full(self) -> bool:
        """Whether the window holds as many records as requested, or as many as fit into memory."""
        return len(self._heap) >= self._limit or self._bytes >= _MOST_BYTES

    def add(self, record: ConsumerRecord) -> None:
        """Add a record.

        If the window then has too many records, the one at the far end is dropped.
        """
        sign = self._sign
        key = (sign * record.timestamp_ms, sign * record.partition, sign * record.offset)
        if self.is_full and self._heap and key < self._heap[0][0]:
            self._drop(record.partition, record.offset)
            return
        shown = message(record)
        self._bytes += _size(shown)
        heapq.heappush(self._heap, (key, shown))
        while len(self._heap) > self._limit or (self._bytes > _MOST_BYTES and len(self._heap) > 1):
            _, old = heapq.heappop(self._heap)
            self._bytes -= _size(old)
            self._drop(old["partition"], old["offset"])

    def _drop(self, partition: int, offset: int) -> None:
        nearest = max if self._sign > 0 else min
        self.dropped[partition] = nearest(offset, self.dropped.get(partition, offset))

    def messages(self) -> list[Message]:
        """Return the records in order of time."""
        return [shown for _, shown in sorted(self._heap, key=_order)]


def _order(one: tuple[_Key, Message]) -> tuple[int, int, int]:
    shown = one[1]
    time = -1 if shown["time"] is None else shown["time"]
    return time, shown["partition"], shown["offset"]


def _size(shown: Message) -> int:
    contents = [shown["key"], shown["value"], *(each["value"] for each in shown["headers"])]
    names = sum(len(each["name"]) for each in shown["headers"])
    return 500 + names + sum(len(each["text"] or "") + 100 for each in contents)
