"""Writes to the compacted topic: few keys, values and tombstones, partly in transactions."""

from __future__ import annotations

from random import Random

from barnabas.client import Producer
from barnabas.errors import BarnabasError
from simulation.whole.environment import KEYED, Environment
from simulation.whole.history import Transaction, Writing
from simulation.whole.transactors import Transactor
from simulation.whole.writers import Writer, send

_KEYS = 12
_TOMBSTONE_CHANCE = 0.15


def _value(around: Environment, random: Random, writing: Writing) -> bytes | None:
    """Give the record a key and return the value to write, or None for a tombstone."""
    writing.key = f"key-{random.randrange(_KEYS)}".encode()
    value = around.history.writes(writing, random.randint(20, around.options.size_bytes))
    writing.is_tombstone = random.random() < _TOMBSTONE_CHANCE
    return None if writing.is_tombstone else value


class KeyedWriter(Writer):
    """Writes with acks=all, idempotently."""

    async def _write(self, producer: Producer, number: int) -> None:
        around, random = self._around, self._random
        name = random.choice(around.partitions(KEYED))
        writing = Writing(self._who, 0, number, name, -1)
        value = _value(around, random, writing)
        try:
            delivery = await send(around.history, producer, writing, value)
        except BarnabasError:
            return
        self._waiting += 1
        delivery.add_done_callback(self._waits_no_more)


class KeyedTransactor(Transactor):
    """Writes in transactions."""

    async def _write(self, producer: Producer, transaction: Transaction, number: int) -> None:
        around, random = self._around, self._random
        name = random.choice(around.partitions(KEYED))
        writing = Writing(transaction.writer, transaction.number, number, name, -1)
        transaction.writings.append(writing)
        value = _value(around, random, writing)
        await send(around.history, producer, writing, value)
