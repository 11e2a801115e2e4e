"""Producers of transactions: some are committed, some deliberately aborted, some left to a
successor.

A successor takes over the transactional id while the old producer still has a transaction open; the
old producer, which does not know, then tries to commit.
"""

from __future__ import annotations

import asyncio
from random import Random

from barnabas.client import Producer
from barnabas.client.errors import Unreachable
from barnabas.errors import BarnabasError, KafkaError
from simulation.whole.actor import Actor, has_started
from simulation.whole.deciding import abort, commit
from simulation.whole.environment import ATOMIC, Environment
from simulation.whole.history import FAIL, Transaction, Writing
from simulation.whole.writers import send

_THOUGHT_MS = 100
_WRONG_IDEA_CHANCE = 0.5  # that the old producer commits while its successor begins


async def begin_life(around: Environment, name: str, random: Random) -> Producer | None:
    """Return a producer that owns this transactional id, or None if it could not get it."""
    options = around.options
    producer = Producer(
        around.servers,
        seams=around.seams(name),
        transactional_id=name,
        transaction_timeout_ms=options.transaction_timeout_ms,
        batch_size=options.max_message_bytes // 2,
        delivery_timeout_ms=options.delivery_timeout_ms,
        max_block_ms=options.max_block_ms,
        **around.common(),
    )
    if not await has_started(producer, around, random):
        return None
    try:
        await producer.init_transactions()
    except (Unreachable, KafkaError) as error:
        around.history.tell("{} does not get its transactional id: {}", name, error)
        await producer.close()
        return None
    return producer


class Transactor(Actor):
    """Owns one transactional id; each of its producers has a unique name, such as `t-0.3`."""

    def __init__(self, around: Environment, name: str, random: Random) -> None:
        super().__init__(around, name, random)
        self._transactions = 0

    async def run(self) -> None:
        producer: Producer | None = None
        while not self._around.is_stopping:
            if producer is None:
                self._lives += 1
                producer = await begin_life(self._around, self.name, self._random)
                continue
            producer = await self._transaction(producer)
            await self._around.rest(self._random, self._around.options.pause_ms)
        if producer is not None:
            await producer.close()

    async def _transaction(self, producer: Producer) -> Producer | None:
        """Make one transaction; returns the producer that goes on after it, if one can."""
        random, options, around = self._random, self._around.options, self._around
        self._transactions += 1
        transaction = around.history.begins(self._who, self._transactions)
        try:
            producer.begin_transaction()
            for number in range(1, random.randint(1, options.most_per_round) * 2):
                await self._write(producer, transaction, number)
                if random.random() < 0.2:
                    await around.rest(random, min(options.pause_ms, _THOUGHT_MS))
        except BarnabasError as error:  # the transaction's state refuses it: it can only end
            around.history.tell("transaction {} breaks off: {}", transaction, error)
            can_go_on = await abort(around, producer, transaction)
        else:
            if random.random() < options.zombie_chance:
                return await self._haunt(producer, transaction)
            if random.random() < options.abort_chance:
                can_go_on = await abort(around, producer, transaction)
            else:
                can_go_on = await commit(around, producer, transaction, random)
        if can_go_on:
            return producer
        await producer.close()
        return None

    async def _write(self, producer: Producer, transaction: Transaction, number: int) -> None:
        random, history = self._random, self._around.history
        name = random.choice(self._around.partitions(ATOMIC))
        writing = Writing(transaction.writer, transaction.number, number, name, -1)
        transaction.writings.append(writing)
        value = history.writes(writing, random.randint(20, self._around.options.size_bytes))
        await send(history, producer, writing, value)

    async def _haunt(self, zombie: Producer, transaction: Transaction) -> Producer | None:
        """Let a producer write and commit although it has a successor."""
        around, random = self._around, self._random
        around.history.tell("{} gets a successor in the middle of {}", self.name, transaction)
        self._lives += 1
        committing = None
        if random.random() < _WRONG_IDEA_CHANCE:
            ending = commit(around, zombie, transaction, random)
            committing = asyncio.get_running_loop().create_task(ending)
        successor = await begin_life(around, self.name, random)
        if committing is None:
            await self._write_on(zombie, transaction)
            await commit(around, zombie, transaction, random)
            if successor is not None and not transaction.is_committed:
                around.history.ends_with(transaction, FAIL, "(since its successor had begun)")
        else:
            await committing
        await zombie.close()
        return successor

    async def _write_on(self, zombie: Producer, transaction: Transaction) -> None:
        """Write some more records, in the transaction that the producer believes to be its own."""
        number = len(transaction.writings)
        try:
            for each in range(self._random.randint(0, 3)):
                await self._write(zombie, transaction, number + 1 + each)
        except BarnabasError as error:
            self._around.history.tell("{} may not write any more: {}", transaction, error)
