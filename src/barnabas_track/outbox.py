"""Sends events to their topic, each id only once, and waits until the brokers have acknowledged
them.

    request ─▶ `store` ─▶ known id? ─ no ─▶ producer (acks=all, idempotent) ─▶ brokers
       ◀── stored, or NotStored ◀── yes: its delivery, or stored already

A sender that receives `NotStored` keeps its events and tries again. The producer may still hold the
records of the first attempt, so the second attempt waits for their delivery instead of writing them
again.

Only the latest ids are remembered, and only by this process. Each record therefore also carries its
id in a header, which lets readers recognise a repetition that came later or after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.producer import Producer
from barnabas.errors import BarnabasError

MOST_IDS: Final = 200_000
WAIT_S: Final = 10.0
"""How long a request waits for the brokers to acknowledge its records."""


class NotStored(BarnabasError):
    """Raised if the brokers have not acknowledged all records. The records may still be stored
    later.
    """


class Outgoing(NamedTuple):
    """A record and its id. Of several records with the same id, only one is stored."""

    id: str
    record: ProducerRecord


class Outbox:
    """Stores records through a started producer. `wait_s` limits how long `store` waits."""

    def __init__(
        self, producer: Producer, *, most_ids: int = MOST_IDS, wait_s: float = WAIT_S
    ) -> None:
        self.trouble = ""  # why the last records were not stored
        self._producer = producer
        self._most_ids = most_ids
        self._wait_s = wait_s
        # Maps each id, the oldest first, to its delivery, or to None once the record is stored.
        self._known: dict[str, Delivery | None] = {}
        # Two requests with the same id must not both find it unknown.
        self._sending = asyncio.Lock()

    async def store(self, given: Sequence[Outgoing]) -> int:
        """Store records, and return how many of their ids were already known.

        Raises NotStored.
        """
        try:
            async with asyncio.timeout(self._wait_s):
                deliveries, known = await self._send(given)
                for delivery in deliveries:
                    await delivery
        except TimeoutError:
            self.trouble = f"no acknowledgement within {self._wait_s:g} s"
            raise NotStored(self.trouble) from None
        except BarnabasError as error:
            self.trouble = str(error)
            raise NotStored(self.trouble) from error
        self.trouble = ""
        return known

    async def _send(self, given: Sequence[Outgoing]) -> tuple[list[Delivery], int]:
        """Pass the new records to the producer. Return all deliveries in progress and the number of
        known ids.
        """
        deliveries: list[Delivery] = []
        known = 0
        async with self._sending:
            for id_, record in given:
                if id_ in self._known:
                    known += 1
                    delivery = self._known[id_]
                else:
                    delivery = await self._producer.send_record(record)
                    self._remember(id_, delivery)
                if delivery is not None:
                    deliveries.append(delivery)
        return deliveries, known

    def _remember(self, id_: str, delivery: Delivery) -> None:
        if len(self._known) >= self._most_ids:
            del self._known[next(iter(self._known))]
        self._known[id_] = delivery
        delivery.add_done_callback(partial(self._on_done, id_))

    def _on_done(self, id_: str, delivery: Delivery) -> None:
        if self._known.get(id_) is not delivery:
            return  # forgotten in the meantime
        if delivery.exception() is None:
            self._known[id_] = None  # releases the batch
        else:
            del self._known[id_]  # the next attempt sends the record again
