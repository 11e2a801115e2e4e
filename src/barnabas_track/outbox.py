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
from itertools import groupby
from typing import Final, NamedTuple

from barnabas.client.producer.batch import ProducerRecord
from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.producer import Producer
from barnabas.errors import BarnabasError
from barnabas_track.recent_ids import RecentIds

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
        self._wait_s = wait_s
        # Maps each id to its delivery, or to None once the record is stored.
        self._known: RecentIds[Delivery | None] = RecentIds(most_ids)
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
                    if not delivery.done():
                        await delivery
                    elif (error := delivery.exception()) is not None:
                        raise error
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
        new: list[tuple[str, Delivery]] = []
        known = 0
        async with self._sending:
            try:
                for each in given:
                    if each.id in self._known:
                        known += 1
                        delivery = self._known[each.id]
                    else:
                        delivery = await self._producer.send_record(each.record)
                        self._known.remember(each.id, delivery)
                        new.append((each.id, delivery))
                    if delivery is not None:
                        deliveries.append(delivery)
            finally:
                self._watch(new)
        return deliveries, known

    def _watch(self, new: Sequence[tuple[str, Delivery]]) -> None:
        """Learn the outcomes of new records, with one callback for those that share a batch."""
        for _, sharing in groupby(new, key=lambda each: each[1].batch):
            group = list(sharing)
            group[0][1].add_done_callback(partial(self._on_done, group))

    def _on_done(self, group: Sequence[tuple[str, Delivery]], _: Delivery) -> None:
        for id_, delivery in group:
            if self._known.get(id_) is not delivery:
                continue  # forgotten in the meantime
            if delivery.exception() is None:
                self._known[id_] = None  # releases the batch
            else:
                del self._known[id_]  # the next attempt sends the record again
