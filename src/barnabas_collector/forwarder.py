"""Sends received messages to a topic in order. Messages may be lost before they reach this process.
A received message is sent exactly once as long as the process does not die.

Messages wait until they are acknowledged, no matter how long the brokers are unavailable. A message
that is rejected because of its size is counted and skipped, so that it does not hold up the other
messages.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from barnabas.client.producer.delivery import Delivery
from barnabas.client.producer.murmur2 import partition_for_key
from barnabas.client.producer.producer import Producer
from barnabas.counted import counted
from barnabas.errors import BarnabasError, MessageTooLarge
from barnabas.types import TopicPartition
from barnabas_collector.bundle import Bundle, encode_bundles, pack
from barnabas_collector.collector_metrics import CollectorMetrics
from barnabas_collector.inbox import Inbox
from barnabas_collector.shipment import Shipment, Shipped
from barnabas_collector.tally import Tally

_log = logging.getLogger(__name__)

_AGAIN_AFTER_S: Final = 1.0
PART: Final = "standard input and listeners"
_BATCH_BYTES: Final = 131_072

_Sent = tuple[list[Bundle], Delivery | BarnabasError | None]

_partition = lru_cache(4_096)(partition_for_key)


class Forwarder:
    """Forwards the messages of an inbox until it has ended.

    `partitions` is the number of partitions in the topic.
    """

    def __init__(
        self,
        producer: Producer,
        shipment: Shipment,
        partitions: int,
        inbox: Inbox,
        metrics: CollectorMetrics,
    ) -> None:
        self.shipped = Shipped()
        self.unsent = 0  # messages taken from the inbox and not acknowledged
        self.at_risk = 0  # unsent messages that their senders no longer have
        self._producer = producer
        self._topic = shipment.topic
        self._codec = shipment.codec
        self._partitions = partitions
        self._inbox = inbox
        self._metrics = metrics
        self._most_bytes = _BATCH_BYTES
        self._is_proven = False  # whether brokers have accepted batches of this size
        self._refused = Tally(
            "message was rejected by the brokers and is lost",
            "messages were rejected by the brokers and are lost",
        )

    async def run(self) -> None:
        while bundles := await self._inbox.take():
            self.unsent = sum(bundle.count for bundle in bundles)
            self.at_risk = sum(bundle.count for bundle in bundles if bundle.awaited is None)
            self._metrics.on_pending(PART)
            left: Sequence[Bundle] = bundles
            while left := await self._send(left):
                pass
            self._inbox.release(bundles)
        self._refused.log_rest()

    async def _send(self, bundles: Sequence[Bundle]) -> list[Bundle]:
        """Send the bundles, and return those that must be sent again immediately."""
        again: list[Bundle] = []
        why: BarnabasError | None = None
        for batch, sent in await self._accept_all(bundles):
            if sent is None:
                again += batch
                continue
            error = await _outcome(sent)
            if error is None:
                self._store(batch)
            elif not isinstance(error, MessageTooLarge):
                again += batch
                why = error
            # No smaller batch is possible; drop it to let the others pass.
            elif _is_one(batch):
                self._refuse(batch[0], error)
            else:  # the batch is too large, but each message in it may be small enough
                again += batch
                self._most_bytes = min(self._most_bytes, _record_bytes(batch) // 2)
                self._is_proven = False
        if why is not None:
            self._metrics.on_retry(PART, why)
            _log.warning("retrying %s: %s", counted(self.unsent, "message"), why)
            await asyncio.sleep(_AGAIN_AFTER_S)
            # Partitions may have been added. If so, keys are distributed over them as well.
            await self._look_at_topic()
        return again

    async def _accept_all(self, bundles: Sequence[Bundle]) -> list[_Sent]:
        """Return each batch with its delivery or its error. Instead of these, None means that the
        batch must wait, so that it does not overtake other batches.
        """
        by_partition: dict[int, list[Bundle]] = {}
        for bundle in bundles:
            partition = _partition(bundle.origin.key, self._partitions)
            by_partition.setdefault(partition, []).append(bundle)
        found: list[_Sent] = []
        is_held = False
        for partition, those in by_partition.items():
            place = TopicPartition(self._topic, partition)
            for batch in pack(those, self._most_bytes):
                sent = None if is_held else await self._accept(place, batch)
                found.append((batch, sent))
                # After a failure, send nothing more in this round, because a sender's messages must
                # not overtake the failed ones. A message that is too large for the brokers does not
                # delay others.
                is_lost = isinstance(sent, MessageTooLarge) and _is_one(batch)
                is_held = is_held or (isinstance(sent, BarnabasError) and not is_lost)
        return found

    async def _accept(
        self, place: TopicPartition, batch: Sequence[Bundle]
    ) -> Delivery | BarnabasError:
        """Send a batch.

        Wait for its outcome unless batches of this size are known to be accepted.
        """
        now_ms = int(time.time() * 1_000)
        try:
            delivery = await self._producer.send_batch(
                place, encode_bundles(batch, self._codec, now_ms)
            )
        except BarnabasError as error:
            return error
        if self._is_proven:
            await asyncio.sleep(0)  # lets the batch be sent and the sources be read
        # Until the size is proven, the next batch waits, because this one may have to be split and
        # sent again.
        elif (refusal := await _outcome(delivery)) is not None:
            return refusal
        else:
            self._is_proven = _record_bytes(batch) > self._most_bytes // 2
        return delivery

    async def _look_at_topic(self) -> None:
        """Look up the topic again, because its number of partitions may have changed."""
        try:
            self._partitions = len(await self._producer.partitions_for(self._topic))
        except BarnabasError as error:
            _log.warning("topic %s: %s", self._topic, error)

    def _store(self, batch: Sequence[Bundle]) -> None:
        count = sum(bundle.count for bundle in batch)
        size_bytes = sum(bundle.came_bytes for bundle in batch)
        cut = sum(bundle.is_cut for bundle in batch)
        self.unsent -= count
        for bundle in batch:
            if bundle.awaited is None:
                self.at_risk -= bundle.count
            else:
                bundle.awaited.on_stored()
        self._metrics.on_sent(count, size_bytes, cut)
        self._metrics.on_ready(PART)
        if self.unsent:
            self._metrics.on_pending(PART)
        self.shipped = self.shipped.plus(Shipped(count, size_bytes, cut))

    def _refuse(self, bundle: Bundle, why: MessageTooLarge) -> None:
        self.unsent -= 1
        self._metrics.on_ready(PART)
        if self.unsent:
            self._metrics.on_pending(PART)
        if bundle.awaited is not None:  # the message is not lost, because its sender is notified
            bundle.awaited.on_refused(why)
            return
        self.at_risk -= 1
        self.shipped = self.shipped.plus(Shipped(refused=1))
        self._metrics.lost["refused"].increment()
        self._refused.add(1, str(why))


def _is_one(batch: Sequence[Bundle]) -> bool:
    return sum(bundle.count for bundle in batch) == 1


def _record_bytes(batch: Sequence[Bundle]) -> int:
    return sum(bundle.record_bytes for bundle in batch)


async def _outcome(sent: Delivery | BarnabasError) -> BarnabasError | None:
    if isinstance(sent, BarnabasError):
        return sent
    try:
        await sent
    except BarnabasError as error:
        return error
    return None
