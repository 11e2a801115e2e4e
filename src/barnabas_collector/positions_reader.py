"""Reads the positions that collectors have written."""

from __future__ import annotations

import contextlib
from typing import Final

from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.offsets import LATEST
from barnabas.types import TopicPartition
from barnabas_collector.positions import POSITIONS_TOPIC, Positions
from barnabas_collector.shipment import Shipment
from barnabas_collector.topic_end import records_until

_POSITIONS: Final = TopicPartition(POSITIONS_TOPIC, 0)


class PositionsReader:
    """Reads the topic of the positions. Use it as an async context manager."""

    def __init__(self, shipment: Shipment, positions: Positions) -> None:
        servers, options = shipment.bootstrap_servers, shipment.client_options
        self._positions = positions
        self._admin = Admin(servers, **options)
        self._consumer = Consumer(servers, **options, isolation_level="read_committed")
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> PositionsReader:
        await self._stack.enter_async_context(self._admin)
        await self._stack.enter_async_context(self._consumer)
        self._consumer.assign([_POSITIONS])
        await self._consumer.seek_to_beginning()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def read_to_end(self) -> None:
        """Read up to the present end of the topic; waits for transactions of other collectors that
        are open there."""
        end = (await self._admin.list_offsets({_POSITIONS: LATEST}))[_POSITIONS].offset
        async for records in records_until(self._consumer, {_POSITIONS: end}):
            for record in records:
                self._positions.load(record.key, record.value)
