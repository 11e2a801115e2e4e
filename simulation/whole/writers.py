"""Producers without transactions: acks=all and idempotent, acks=1, acks=0.

Each writes unique records to partitions that it draws, several at a time, and records the outcome
of each. Now and then it closes its producer and continues with another one, under another name.
"""

from __future__ import annotations

from functools import partial
from random import Random

from barnabas.client import Producer
from barnabas.client.producer.delivery import Delivery
from barnabas.errors import (
    BarnabasError,
    InvalidProducerEpoch,
    InvalidTimestamp,
    InvalidTxnState,
    MessageTooLarge,
    NotEnoughReplicas,
    OutOfOrderSequenceNumber,
    ProducerFenced,
)
from simulation.whole.actor import Actor, has_started
from simulation.whole.environment import ACKS, SHIFTING, Environment
from simulation.whole.history import History, Writing

_REFUSALS = (
    InvalidProducerEpoch,
    InvalidTimestamp,
    InvalidTxnState,
    MessageTooLarge,
    NotEnoughReplicas,
    OutOfOrderSequenceNumber,
    ProducerFenced,
)
"""The errors that a broker reports before it appends.

NotLeaderOrFollower is not one of them: a client with acks=all may get it as well.
"""

_MOST_WAITING = 40
_FLUSH_CHANCE = 0.15
_LARGE_CHANCE = 0.1


def settled(history: History, writing: Writing, delivery: Delivery) -> None:
    """Record the outcome of a record."""
    error, batch = delivery.exception(), delivery.batch
    writing.attempts = batch.attempts
    if error is None:
        history.acknowledged(writing, delivery.result().offset)
    elif batch.attempts == 0 or (not batch.in_doubt and isinstance(error, _REFUSALS)):
        # If it was in doubt and given up before a retry, it has the error that caused the doubt,
        # perhaps another batch's.
        history.failed(writing, error)
    else:
        history.in_doubt(writing, error)


async def send(
    history: History, producer: Producer, writing: Writing, value: bytes | None
) -> Delivery:
    """Send the record and have its outcome recorded; raises if it is not even accepted."""
    name = writing.name
    try:
        delivery = await producer.send(name.topic, value, key=writing.key, partition=name.partition)
    except BarnabasError as error:
        history.failed(writing, error)
        raise
    delivery.add_done_callback(partial(settled, history, writing))
    return delivery


class Writer(Actor):
    """Writes to one topic, until all are asked to stop."""

    delivery_timeout_ms = 0  # 0: use the value in the options

    def __init__(
        self, around: Environment, name: str, topic: str, random: Random, *, is_large: bool = False
    ) -> None:
        super().__init__(around, name, random)
        self._seams = around.seams(name)
        self._topic = topic
        self._is_large = is_large
        self._waiting = 0

    async def run(self) -> None:
        while not self._around.is_stopping:
            await self._live()

    async def _live(self) -> None:
        """Run one producer until it is closed."""
        options, random = self._around.options, self._random
        self._lives += 1
        producer = Producer(
            self._around.servers,
            seams=self._seams,
            acks=ACKS[self._topic],
            batch_size=options.max_message_bytes // 2,
            delivery_timeout_ms=self.delivery_timeout_ms or options.delivery_timeout_ms,
            max_block_ms=options.max_block_ms,
            linger_ms=random.choice((0, 0, 5, 20)),
            compression_type=random.choice(("none", "none", "lz4")),
            **self._around.common(),
        )
        if not await has_started(producer, self._around, random):
            return
        self._begin(producer)
        try:
            number = 0
            for _ in range(random.randint(20, 200)):
                if self._around.is_stopping:
                    break
                number = await self._round(producer, number)
        finally:
            await self._close(producer)

    def _begin(self, producer: Producer) -> None:
        """Begin with a producer that has started."""

    async def _flush(self, producer: Producer) -> None:
        await producer.flush()

    async def _close(self, producer: Producer) -> None:
        await producer.close()

    async def _round(self, producer: Producer, number: int) -> int:
        """Write a few records at a time; returns the number of the last one."""
        options, random = self._around.options, self._random
        for _ in range(random.randint(1, options.most_per_round)):
            number += 1
            await self._write(producer, number)
        is_flushing = random.random() < _FLUSH_CHANCE  # drawn also where it makes no difference
        if is_flushing or self._waiting > _MOST_WAITING:
            await self._flush(producer)
        await self._around.rest(random, options.pause_ms)
        return number

    async def _write(self, producer: Producer, number: int) -> None:
        options, random, history = self._around.options, self._random, self._around.history
        name = random.choice(self._around.partitions(self._topic))
        writing = Writing(self._who, 0, number, name, ACKS[self._topic])
        if self._topic == SHIFTING:
            writing.key = writing.id  # all are distinct: compaction, if any, removes none
        size_bytes = random.randint(20, options.size_bytes)
        if self._is_large and random.random() < _LARGE_CHANCE:
            size_bytes = options.large_bytes
        value = history.writes(writing, size_bytes)
        if size_bytes == options.large_bytes:
            # Even compressed, it is larger than the topic accepts.
            value = writing.id + b"|" + random.randbytes(size_bytes)
        await self._send(producer, writing, value)

    async def _send(self, producer: Producer, writing: Writing, value: bytes) -> None:
        try:
            delivery = await send(self._around.history, producer, writing, value)
        except BarnabasError:
            return
        self._waiting += 1
        delivery.add_done_callback(self._waits_no_more)

    def _waits_no_more(self, _: Delivery) -> None:
        self._waiting -= 1


class HastyWriter(Writer):
    """Gives up a record early, while others of its partition are still under way (PR-3)."""

    delivery_timeout_ms = 2_500
