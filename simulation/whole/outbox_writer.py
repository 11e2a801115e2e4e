"""Uses a producer as `SyncProducer` does: valid and invalid records go through its outbox.

A simulation has no threads, so the loop does the work of other threads, which check a record and
put it into the outbox. The drain, the queues of topics that are not known yet and the deliveries
are the client's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from barnabas.client import Producer
from barnabas.client.errors import ClientClosed
from barnabas.client.producer.batch import CheckedRecord, ProducerRecord
from barnabas.client.sync.delivery import SyncDelivery
from barnabas.client.sync.outbox import Outbox
from barnabas.errors import BarnabasError
from simulation.whole.environment import Environment
from simulation.whole.history import Writing
from simulation.whole.writers import Writer, settled

_ODD_CHANCE = 0.1
_ODD_HEADER: Any = [("hops", 3)]


class _SameLoop:
    """Provides what an outbox needs from the loop's thread when it already runs in that thread."""

    def call_soon(self, callback: Callable[[], Any]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def check(self) -> None:
        raise ClientClosed("the loop cannot wait for itself")


class _Delivery(SyncDelivery):
    """A delivery for which no thread waits."""

    def __init__(self, record: CheckedRecord) -> None:
        self.record = record
        self.delivery = None
        self.error = None
        self.on_delivery = None
        self._when_queued = None


class OutboxWriter(Writer):
    """Writes through an outbox, and sometimes tries to send an invalid record, which must not
    affect anything else."""

    def __init__(self, around: Environment, name: str, topic: str, random: Random) -> None:
        super().__init__(around, name, topic, random)
        self._outbox: Outbox
        self._open: dict[_Delivery, None] = {}

    def _begin(self, producer: Producer) -> None:
        self._outbox = Outbox(producer.intake, _SameLoop())
        self._open = {}

    async def _flush(self, producer: Producer) -> None:
        before = list(self._open)
        await self._outbox.wait_until_drained()
        await producer.flush()
        lost = [each.record for each in before if not each.done()]
        if lost:
            self._around.history.surprise(
                self.name, AssertionError(f"flushed, and without an outcome: {lost}")
            )

    async def _close(self, producer: Producer) -> None:
        self._outbox.refuse()
        try:
            await self._flush(producer)
        finally:
            await producer.close()

    async def _send(self, producer: Producer, writing: Writing, value: bytes) -> None:
        if self._random.random() < _ODD_CHANCE:
            self._send_odd(producer, writing)
        topic, partition = writing.name
        history = self._around.history
        try:
            checked = producer.intake.check(ProducerRecord(topic, value, writing.key, partition))
            delivery = self._put(checked)
        except BarnabasError as error:
            history.failed(writing, error)
            return
        self._waiting += 1
        delivery.when_done(partial(self._settled, writing, delivery))

    def _send_odd(self, producer: Producer, writing: Writing) -> None:
        topic, partition = writing.name
        odd = ProducerRecord(topic, b"odd", None, partition, headers=_ODD_HEADER)
        try:
            checked = producer.intake.check(odd)
        except (TypeError, BarnabasError):
            return  # as it should be
        self._put(checked)

    def _put(self, record: CheckedRecord) -> _Delivery:
        delivery = _Delivery(record)
        self._outbox.put(delivery)
        self._open[delivery] = None
        delivery.when_done(partial(self._open.pop, delivery, None))
        return delivery

    def _settled(self, writing: Writing, delivery: _Delivery) -> None:
        self._waiting -= 1
        history = self._around.history
        if delivery.delivery is not None:
            settled(history, writing, delivery.delivery)
        elif isinstance(delivery.error, BarnabasError):
            history.failed(writing, delivery.error)
        else:
            history.surprise(self.name, delivery.error or AssertionError("no outcome"))
