"""Consumes, transforms and produces exactly once: copies what a group reads, in transactions with
the group's offsets (KIP-98, KIP-447).

A copy's value is a unique name followed by the id of the copied record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random

from barnabas.client import Consumer, ConsumerRecord, Producer
from barnabas.client.consumer.committed import OffsetAndMetadata
from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition
from simulation.whole.actor import Actor, has_started
from simulation.whole.deciding import abort, commit
from simulation.whole.environment import COPIERS, COPIES, SURE, Environment
from simulation.whole.history import (
    Stretch,
    Transaction,
    Writing,
    id_of,
)
from simulation.whole.members import Listener, group_consumer, has_group_read_all
from simulation.whole.transactors import begin_life
from simulation.whole.writers import send


class Copier(Actor):
    """A member of the group of copiers, with its own transactional id."""

    def __init__(self, around: Environment, name: str, random: Random) -> None:
        super().__init__(around, name, random)
        self._transactions = 0
        self._is_done = False

    async def run(self) -> None:
        while not self._is_done:
            await self._live()

    async def _live(self) -> None:
        around, random = self._around, self._random
        self._lives += 1
        producer = await begin_life(around, self.name, random)
        if producer is None:
            return
        try:
            consumer = group_consumer(around, self.name, COPIERS, is_committed=True)
            if not await has_started(consumer, around, random):
                return
            attendance = around.history.attends(COPIERS, self._who)
            try:
                await self._copy_all(consumer, producer)
            finally:
                around.history.leaves(attendance)
                await consumer.close()
        finally:
            await producer.close()

    async def _copy_all(self, consumer: Consumer, producer: Producer) -> None:
        """Copy until either client cannot go on, or everything is copied."""
        around, random = self._around, self._random
        stretch = around.history.stretch(self._who, COPIERS, is_committed=True)
        listener = Listener(around, consumer, stretch)
        consumer.subscribe([SURE], listener)
        while True:
            try:
                records = await consumer.poll(around.options.poll_ms)
            except BarnabasError as error:
                around.history.tell("{} cannot read: {}", self.name, error)
                await around.rest(random, 500)
                continue
            self._notes(listener.stretch, records)
            if records:
                if not await self._copy(listener.stretch, consumer, producer, records):
                    return
            elif around.is_draining:
                self._is_done = await has_group_read_all(around, consumer, [SURE])
            if self._is_done or (
                not around.is_draining and random.random() < around.options.leave_chance
            ):
                return

    async def _copy(
        self,
        stretch: Stretch,
        consumer: Consumer,
        producer: Producer,
        records: Sequence[ConsumerRecord],
    ) -> bool:
        """Copy the polled records; returns whether both clients can go on."""
        around, random = self._around, self._random
        self._transactions += 1
        transaction = around.history.begins(self._who, self._transactions)
        positions = consumer.positions()
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        try:
            producer.begin_transaction()
            for number, record in enumerate(records, 1):
                source = TopicPartition(record.topic, record.partition)
                offsets[source] = positions[source]
                await self._write(producer, transaction, number, record)
            if random.random() < around.options.dawdle_chance and not around.is_stopping:
                around.history.tell("{} takes its time", self.name)
                await asyncio.sleep(around.options.max_poll_interval_ms * 1.2 / 1000)
            await producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
        except BarnabasError as error:
            around.history.tell("transaction {} breaks off: {}", transaction, error)
            can_go_on = await abort(around, producer, transaction)
            return can_go_on and await self._rewind(stretch, consumer)
        if random.random() < around.options.abort_chance / 2:
            can_go_on = await abort(around, producer, transaction)
            return can_go_on and await self._rewind(stretch, consumer)
        if not await commit(around, producer, transaction, random):
            return False
        if not transaction.is_committed:
            return await self._rewind(stretch, consumer)
        around.history.groups_with_offsets.add(COPIERS)
        return True

    async def _write(
        self, producer: Producer, transaction: Transaction, number: int, source: ConsumerRecord
    ) -> None:
        history = self._around.history
        name = TopicPartition(COPIES, source.partition)
        writing = Writing(transaction.writer, transaction.number, number, name, -1)
        transaction.writings.append(writing)
        value = history.writes(writing, 0) + id_of(source.value)
        writing.source = id_of(source.value)
        await send(history, producer, writing, value)

    async def _rewind(self, stretch: Stretch, consumer: Consumer) -> bool:
        """Go back to the committed offsets; returns False if they cannot be found out."""
        names = consumer.assignment()
        try:
            committed = await consumer.committed(*names)
        except BarnabasError as error:
            self._around.history.tell("{} cannot go back: {}", self.name, error)
            return False
        for name in names:
            at = committed[name]
            stretch.goes_to(name, at.offset if at is not None else 0)
            consumer.seek(name, at.offset if at is not None else 0)
        return True
