"""Creates a topic, writes to it, deletes it during the writing, and recreates it.

Its name is the same each time. The records judged are those acknowledged in an era before its end
was requested; another producer writes all the time, and its records do not count.
"""

from __future__ import annotations

import asyncio
from random import Random

from barnabas.client import Admin, NewTopic, Producer
from barnabas.client.errors import Unreachable
from barnabas.errors import BarnabasError, TopicAlreadyExists, UnknownTopicOrPartition
from simulation.whole.actor import Actor, has_started
from simulation.whole.environment import FLEETING, Environment
from simulation.whole.history import Era, Writing
from simulation.whole.writers import send

_PAUSE_MS = 150
_ROUNDS = 8
_BLOCK_MS = 1_000
_NOISE_EVERY_S = 0.05


class Remaker(Actor):
    """The only user of the topic. At the end of the run, the topic exists."""

    def __init__(self, around: Environment, name: str, random: Random) -> None:
        super().__init__(around, name, random)
        self._seams = around.seams(name)

    async def run(self) -> None:
        is_certain = True
        async with Admin(self._around.servers, seams=self._seams, **self._around.common()) as admin:
            while True:
                self._lives += 1
                era = Era(self._lives, is_certain and await self._is_made(admin))
                self._around.history.eras.append(era)
                noise = asyncio.get_running_loop().create_task(self._noise())
                await self._write(era)
                if self._around.is_stopping:
                    noise.cancel()
                    return
                is_certain = await self._is_deleted(admin)
                noise.cancel()

    async def _is_made(self, admin: Admin) -> bool:
        """Create the topic, however long that takes; returns whether it certainly did not exist
        before."""
        flush_messages = self._random.choice((1, 1_000_000))
        # Where machines lose their power one after another, an acknowledged record is kept only if
        # each of its replicas has flushed it.
        if self._around.options.is_flushed:
            flush_messages = 1
        configs = {
            "min.insync.replicas": str(self._around.options.min_insync_replicas),
            "segment.bytes": "2048",
            "flush.messages": str(flush_messages),
        }
        new = NewTopic(FLEETING, 1, self._around.options.replication_factor, configs)
        while True:
            try:
                await admin.create_topics([new])
            except TopicAlreadyExists:
                # An attempt without an answer created it, or it is not deleted yet.
                self._around.history.tell("{} is there already", FLEETING)
                return False
            except (Unreachable, BarnabasError) as error:
                self._around.history.tell("{} cannot be made: {}", FLEETING, error)
                await self._around.rest(self._random, 500)
            else:
                return True

    async def _is_deleted(self, admin: Admin) -> bool:
        """Delete the topic; returns whether no deletion request can still be under way."""
        is_certain = True
        while True:
            try:
                await admin.delete_topics([FLEETING])
            except UnknownTopicOrPartition:
                return is_certain
            except (Unreachable, BarnabasError) as error:
                self._around.history.tell("{} cannot be deleted: {}", FLEETING, error)
                is_certain = False
                await self._around.rest(self._random, 500)
            else:
                self._around.history.tell("{} is deleted", FLEETING)
                return is_certain

    async def _write(self, era: Era) -> None:
        """Write a few rounds, waiting for the outcomes of each."""
        around, random = self._around, self._random
        producer = self._producer(acks=-1)
        if not await has_started(producer, around, random):
            return
        try:
            for number in range(random.randint(1, _ROUNDS)):
                name = random.choice(around.partitions(FLEETING))
                writing = Writing(f"{self.name}.{era.number}", 0, number, name, -1)
                value = around.history.writes(writing, random.randint(20, 600))
                try:
                    await send(around.history, producer, writing, value)
                    await producer.flush()
                except BarnabasError as error:
                    around.history.tell("{} is not accepted: {}", writing, error)
                await around.rest(random, _PAUSE_MS)
        finally:
            await producer.close()

    async def _noise(self) -> None:
        """Write without waiting for anything, also during the deletion."""
        producer = self._producer(acks=1)
        if not await has_started(producer, self._around, self._random):
            return
        try:
            while True:
                try:
                    await producer.send(FLEETING, b"noise|" + bytes(200), partition=0)
                except BarnabasError as error:
                    self._around.history.tell("noise: {}", error)
                await asyncio.sleep(_NOISE_EVERY_S)
        finally:
            await producer.close()

    def _producer(self, acks: int) -> Producer:
        return Producer(
            self._around.servers,
            seams=self._seams,
            acks=acks,
            delivery_timeout_ms=5_000,
            max_block_ms=_BLOCK_MS,
            **self._around.common(),
        )
