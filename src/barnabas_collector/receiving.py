"""Receives messages from programs and systems and forwards them to a topic until the sources end.

    standard input, syslog ─▶ inbox ─▶ forwarder ─▶ brokers

Nothing is written to disk on the way, so messages received but not yet acknowledged are lost if the
process dies. To limit their number, no source is read while the brokers do not respond.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Final, Protocol

from barnabas.client.errors import DeliveryTimedOut, Unreachable
from barnabas.client.producer.producer import Producer
from barnabas.counted import counted
from barnabas_collector.collector_metrics import CollectorMetrics
from barnabas_collector.complaint import Complaint
from barnabas_collector.forwarder import PART, Forwarder
from barnabas_collector.inbox import Inbox
from barnabas_collector.joint_work import run_together
from barnabas_collector.shipment import Shipment, Shipped

STOP_WITHIN_S: Final = 10.0
_AGAIN_AFTER_S: Final = 1.0
_AS_LONG_AS_IT_TAKES_MS: Final = 2**31 - 1  # 24 days


class Source(Protocol):
    async def run(self, inbox: Inbox, stopping: asyncio.Event) -> None:
        """Put messages into the inbox until the source ends or `stopping` is set.

        Raises `ConfigError`.
        """
        ...


async def receive(
    shipment: Shipment,
    sources: Sequence[Source],
    stopping: asyncio.Event,
    *,
    is_patient: bool = True,
) -> Shipped:
    """Forward the sources' messages until all sources have ended, or `stopping` is set.

    If `is_patient`, keep trying while the brokers cannot be reached at the start.

    Raises `ConfigError` if a source is unavailable, and `DeliveryTimedOut` if the brokers do not
    accept the remaining messages within `STOP_WITHIN_S` after the stop. Any other error of the
    brokers at the start is also raised.
    """
    metrics = shipment.metrics or CollectorMetrics()
    metrics.on_waiting(PART, "is not connected to the brokers yet")
    inbox = Inbox(redact=shipment.redact, metrics=metrics)
    sending = _Sending(shipment, inbox, metrics, is_patient=is_patient)
    task = asyncio.create_task(sending.run(stopping))
    watching = asyncio.create_task(_limit(stopping, inbox, task))

    def on_done(_: asyncio.Task[None]) -> None:
        # If the task has failed, nothing will make room for the sources.
        if not inbox.has_ended:
            stopping.set()
            inbox.stop()

    task.add_done_callback(on_done)
    try:
        await run_together(stopping, *(source.run(inbox, stopping) for source in sources))
    finally:
        inbox.end()
        await asyncio.gather(task, return_exceptions=True)
        watching.cancel()
    if task.cancelled():
        lost = inbox.count + sending.at_risk
        if not lost:
            return sending.shipped.plus(Shipped(dropped=inbox.dropped))
        raise DeliveryTimedOut(
            f"lost {counted(lost, 'message')} after receipt: the brokers did not accept them"
            f" within {STOP_WITHIN_S:g} s of the stop"
        )
    task.result()
    return sending.shipped.plus(Shipped(dropped=inbox.dropped))


class _Sending:
    """Connects to the brokers, and then forwards an inbox until it has ended."""

    def __init__(
        self, shipment: Shipment, inbox: Inbox, metrics: CollectorMetrics, *, is_patient: bool
    ) -> None:
        self._shipment = shipment
        self._inbox = inbox
        self._metrics = metrics
        self._is_patient = is_patient
        self._forwarder: Forwarder | None = None

    @property
    def shipped(self) -> Shipped:
        return Shipped() if self._forwarder is None else self._forwarder.shipped

    @property
    def at_risk(self) -> int:
        return 0 if self._forwarder is None else self._forwarder.at_risk

    async def run(self, stopping: asyncio.Event) -> None:
        complaint = Complaint(PART)
        while True:
            try:
                await self._forward()
                return
            except Unreachable as error:
                # A forwarder retries by itself, so the connection has failed.
                if not self._is_patient or self._forwarder is not None:
                    raise
                self._metrics.on_retry(PART, error)
                complaint.add(error)
            if await self._ends_within(_AGAIN_AFTER_S, stopping):
                if self._inbox.is_empty:
                    return
                await asyncio.sleep(_AGAIN_AFTER_S)

    async def _ends_within(self, limit_s: float, stopping: asyncio.Event) -> bool:
        try:
            async with asyncio.timeout(limit_s):
                await stopping.wait()
                await self._inbox.wait_for_end()
        except TimeoutError:
            return False
        return True

    async def _forward(self) -> None:
        async with _producer(self._shipment) as producer:
            partitions = len(await producer.partitions_for(self._shipment.topic))
            self._metrics.on_ready(PART)
            self._forwarder = Forwarder(
                producer, self._shipment, partitions, self._inbox, self._metrics
            )
            await self._forwarder.run()


async def _limit(stopping: asyncio.Event, inbox: Inbox, sending: asyncio.Task[None]) -> None:
    await stopping.wait()
    # End sources that are waiting for room. Messages that they have read are sent as long as
    # waiting for the brokers is worthwhile.
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
    try:
        await producer.start()
        yield producer
    finally:
        # Only messages that were given up remain in the inbox.
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(producer.close(), 1.0)
