"""Receives messages from programs and systems and forwards them to a topic until the sources end.

    standard input, syslog ─▶ inbox ─▶ forwarder ─▶ brokers

Nothing is written to disk on the way, so messages received but not yet acknowledged are lost if the
process dies. To keep their number small, the sources are not read while the brokers do not respond.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from barnabas.client.errors import DeliveryTimedOut
from barnabas.client.producer.producer import Producer
from barnabas.counted import counted
from barnabas_collector.collector_metrics import CollectorMetrics
from barnabas_collector.forwarder import PART, Forwarder
from barnabas_collector.inbox import Inbox
from barnabas_collector.joint_work import run_together
from barnabas_collector.shipment import Shipment, Shipped

STOP_WITHIN_S: Final = 10.0
_AS_LONG_AS_IT_TAKES_MS: Final = 2**31 - 1  # 24 days


class Source(Protocol):
    async def run(self, inbox: Inbox, stopping: asyncio.Event) -> None:
        """Put messages into the inbox until the source ends or `stopping` is set.

        Raises `ConfigError`.
        """
        ...


async def receive(
    shipment: Shipment, sources: Sequence[Source], stopping: asyncio.Event
) -> Shipped:
    """Forward the sources' messages until all sources have ended, or `stopping` is set.

    Raises `ConfigError` if a source is unavailable, any error of the brokers at the start, or
    `DeliveryTimedOut` if they do not accept the remaining messages within `STOP_WITHIN_S` of the
    stop.
    """
    if shipment.metrics is not None:
        shipment.metrics.on_waiting(PART, "is not connected to the brokers yet")
    async with _producer(shipment) as producer:
        partitions = await producer.partitions_for(shipment.topic)
        metrics = shipment.metrics or CollectorMetrics()
        inbox = Inbox(redact=shipment.redact, metrics=metrics)
        metrics.on_ready(PART)
        forwarder = Forwarder(producer, shipment, len(partitions), inbox, metrics)
        sending = asyncio.create_task(forwarder.run())
        watching = asyncio.create_task(_limit(stopping, inbox, sending))
        try:
            await run_together(stopping, *(source.run(inbox, stopping) for source in sources))
        finally:
            inbox.end()
            await asyncio.gather(sending, return_exceptions=True)
            watching.cancel()
        if sending.cancelled():
            lost = inbox.count + forwarder.unsent
            raise DeliveryTimedOut(
                f"lost {counted(lost, 'message')} after receipt: the brokers did not accept them"
                f" within {STOP_WITHIN_S:g} s of the stop"
            )
        sending.result()
        return forwarder.shipped.plus(Shipped(dropped=inbox.dropped))


async def _limit(stopping: asyncio.Event, inbox: Inbox, sending: asyncio.Task[None]) -> None:
    await stopping.wait()
    # Sources waiting for room end as well. The messages that they have read are still sent, as long
    # as waiting for the brokers is worthwhile.
    inbox.stop()
    await asyncio.sleep(STOP_WITHIN_S)
    sending.cancel()


@contextlib.asynccontextmanager
async def _producer(shipment: Shipment) -> AsyncIterator[Producer]:
    producer = Producer(
        shipment.bootstrap_servers,
        **shipment.client_options,
        delivery_timeout_ms=_AS_LONG_AS_IT_TAKES_MS,
    )
    await producer.start()
    try:
        yield producer
    finally:
        # Only messages that were given up remain in it.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(producer.close(), 1.0)
