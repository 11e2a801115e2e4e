"""Where a console consumer ends by itself: at a time, or at the ends of its partitions.

A partition's end is looked up once, when it is assigned; records that arrive later are not waited
for. So a command with an end always ends.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.cli.records.start_position import offsets_at
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.consumer.fetched import ConsumerRecord
from barnabas.types import TopicPartition


class Ends:
    """The offset at which each assigned partition ends."""

    def __init__(self, consumer: Consumer, to_ms: int | None) -> None:
        """`to_ms`: end before the first record as young as that; None: at the end of the log."""
        self._consumer = consumer
        self._to_ms = to_ms
        self._ends: dict[TopicPartition, int] = {}

    async def are_reached(self) -> bool:
        """Whether all assigned partitions are at their ends; not before there are any."""
        names = self._consumer.assignment()
        if not names:
            is_member = bool(self._consumer.subscription())
            return is_member and self._consumer.group_metadata().generation >= 0
        await self.look_up()
        positions = self._consumer.positions()
        reached = [
            name
            for name in names
            if name in positions and positions[name].offset >= self._ends[name]
        ]
        if reached:
            self._consumer.pause(*reached)
        return len(reached) == len(names)

    def before(self, records: Iterable[ConsumerRecord]) -> list[ConsumerRecord]:
        """Those of the records that lie before the ends."""
        return [
            record
            for record in records
            if record.offset < self._ends[TopicPartition(record.topic, record.partition)]
        ]

    async def look_up(self) -> None:
        """Look up the ends of partitions that were assigned since."""
        names = [name for name in self._consumer.assignment() if name not in self._ends]
        if not names:
            return
        if self._to_ms is None:
            self._ends.update(await self._consumer.end_offsets(names))
        else:
            self._ends.update(await offsets_at(self._consumer, names, self._to_ms))
