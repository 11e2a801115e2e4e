"""Sends what was received to a topic, in its order: at most once until it is received here, and
once from then on, while this process lives.

Every message waits for its acknowledgement, however long the brokers are away. One that a broker
refuses for its size is counted and passed over, for the others must not wait for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from barnabas.client.batch import ProducerRecord
from barnabas.client.delivery import Delivery
from barnabas.client.producer import Producer
from barnabas.collector.inbox import Inbox, Message
from barnabas.collector.shipment import Shipped
from barnabas.collector.tally import Tally
from barnabas.errors import BarnabasError, MessageTooLarge

_log = logging.getLogger(__name__)

_AGAIN_AFTER_S: Final = 1.0


class Forwarder:
    """From an inbox until that has ended."""

    def __init__(self, producer: Producer, topic: str, inbox: Inbox) -> None:
        self.shipped = Shipped()
        self.unsent = 0  # messages taken from the inbox, without an acknowledgement
        self._producer = producer
        self._topic = topic
        self._inbox = inbox
        self._refused = Tally("messages were refused by the brokers, and are lost")

    async def run(self) -> None:
        while messages := await self._inbox.take():
            self.unsent = len(messages)
            left: Sequence[Message] = messages
            while left := await self._sent(left):
                self.unsent = len(left)
                await asyncio.sleep(_AGAIN_AFTER_S)
            self.unsent = 0
            self._inbox.released(messages)
        self._refused.tell_all()

    async def _sent(self, messages: Sequence[Message]) -> list[Message]:
        """Those that have to be sent again."""
        outcomes = await self._outcomes(messages)
        again: list[Message] = []
        stored: list[Message] = []
        why: BarnabasError | None = None
        for message, error in zip(messages, outcomes, strict=True):
            if isinstance(error, MessageTooLarge) and len(messages) > 1:
                # What is too large is a batch, perhaps, and not this message.
                [error] = await self._outcomes([message])
            if error is None:
                stored.append(message)
            elif isinstance(error, MessageTooLarge):
                self.shipped = self.shipped.plus(Shipped(refused=1))
                self._refused.add(1, str(error))
            else:
                again.append(message)
                why = error
        size_bytes = sum(each.size_bytes for each in stored)
        cut = sum(each.is_cut for each in stored)
        self.shipped = self.shipped.plus(Shipped(len(stored), size_bytes, cut))
        if why is not None:
            _log.warning("%d messages are sent again: %s", len(again), why)
        return again

    async def _outcomes(self, messages: Sequence[Message]) -> list[BarnabasError | None]:
        """Why each was not stored, if it was not."""
        accepted: list[Delivery] = []
        outcomes: list[BarnabasError | None] = []
        refusal: BarnabasError | None = None
        for message in messages:
            try:
                accepted.append(await self._producer.send_record(self._record(message)))
            except BarnabasError as error:
                refusal = error
                break
        for delivery in accepted:
            try:
                await delivery
            except BarnabasError as error:
                outcomes.append(error)
            else:
                outcomes.append(None)
        return outcomes + [refusal] * (len(messages) - len(accepted))

    def _record(self, message: Message) -> ProducerRecord:
        return ProducerRecord(self._topic, message.text, message.key, headers=message.headers)
