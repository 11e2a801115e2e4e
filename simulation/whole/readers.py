"""Consumers without a group, which read all topics from the beginning, and sometimes again."""

from __future__ import annotations

from random import Random

from barnabas.client import Consumer
from barnabas.client.errors import NoOffsetForPartition
from barnabas.errors import BarnabasError, OffsetOutOfRange
from barnabas.types import TopicPartition
from simulation.whole.actor import Actor, has_started
from simulation.whole.environment import TOPICS, Environment
from simulation.whole.history import End, Stretch

_LOOK_CHANCE = 0.2


class Reader(Actor):
    """Reads with one isolation level."""

    def __init__(
        self, around: Environment, name: str, random: Random, *, is_committed: bool
    ) -> None:
        super().__init__(around, name, random)
        self._is_committed = is_committed
        self._names = [name for topic in TOPICS for name in around.partitions(topic)]
        self._is_done = False

    async def run(self) -> None:
        options = self._around.options
        while not self._is_done:
            self._lives += 1
            consumer = Consumer(
                self._around.servers,
                seams=self._around.seams(self.name),
                isolation_level="read_committed" if self._is_committed else "read_uncommitted",
                auto_offset_reset="none",
                fetch_max_wait_ms=options.poll_ms,
                max_partition_fetch_bytes=options.max_message_bytes * 2,
                **self._around.common(),
            )
            if not await has_started(consumer, self._around, self._random):
                continue
            try:
                await self._read_all(consumer)
            finally:
                await consumer.close()

    async def _read_all(self, consumer: Consumer) -> None:
        """Read from the beginning, until it is time to start over or everything has been read."""
        around, random, history = self._around, self._random, self._around.history
        stretch = history.stretch(self.name, is_committed=self._is_committed)
        consumer.assign(self._names)
        for name in self._names:
            stretch.goes_to(name, 0)
            consumer.seek(name, 0)
        while True:
            try:
                records = await consumer.poll(around.options.poll_ms)
            except (NoOffsetForPartition, OffsetOutOfRange) as error:
                history.refuses_read(self.name, error)
                return
            except BarnabasError as error:
                history.tell("{} cannot read: {}", self.name, error)
                await around.rest(random, 500)
                continue
            self._notes(stretch, records)
            if around.is_draining and not records:
                self._is_done = await self._is_at_end(consumer, stretch)
            elif random.random() < _LOOK_CHANCE:
                await self._ends(consumer)
            is_again = random.random() < around.options.again_chance
            if self._is_done or (is_again and not around.is_draining):
                return

    async def _ends(self, consumer: Consumer) -> dict[TopicPartition, int]:
        """Return the latest offsets, or none if they cannot be found out."""
        try:
            ends = await consumer.end_offsets(self._names)
        except BarnabasError as error:
            self._around.history.tell("{} does not get the ends: {}", self.name, error)
            return {}
        for name, offset in ends.items():
            end = End(self.name, self._is_committed, name, offset, self._lives)
            self._around.history.sees_end(end)
        return ends

    async def _is_at_end(self, consumer: Consumer, stretch: Stretch) -> bool:
        ends = await self._ends(consumer)
        for name, end in ends.items():
            if await consumer.position(name) < end:
                return False
        return bool(ends)
