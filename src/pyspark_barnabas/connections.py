"""Provides consumers: one for the driver side of a query, and a few in each worker process for the
query's tasks.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from barnabas.client.sync.producer import SyncConsumer
from pyspark_barnabas.memory import keep_freed_memory

_MOST_KEPT = 4


def connect(properties: Mapping[str, str]) -> SyncConsumer:
    """Return a connected consumer. Raises `NoBrokersAvailable`, which contains the address."""
    # An offset that is out of range must be an error, because a reset would silently lose records.
    options: dict[str, Any] = {**properties, "auto.offset.reset": "none"}
    return SyncConsumer(options.pop("bootstrap.servers"), **options)


class KeptConsumers:
    """Caches connected consumers by their properties. When the cache is full, a new consumer
    replaces the least recently used one."""

    def __init__(self) -> None:
        self._consumers: dict[tuple[tuple[str, str], ...], SyncConsumer] = {}

    def get(self, properties: Mapping[str, str]) -> SyncConsumer:
        name = tuple(sorted(properties.items()))
        # Remove the consumer and add it again, which keeps the least recently used one first.
        consumer = self._consumers.pop(name, None) or connect(properties)
        self._consumers[name] = consumer
        if len(self._consumers) > _MOST_KEPT:
            self._consumers.pop(next(iter(self._consumers))).close()
        return consumer

    def close(self) -> None:
        while self._consumers:
            self._consumers.popitem()[1].close()


@functools.cache
def consumers_of_process() -> KeptConsumers:
    """Return the consumers of this worker process.

    Spark reuses its Python workers for successive tasks and batches, but provides no place where a
    task could store a connection. Connecting again would take longer than reading a small batch.
    """
    keep_freed_memory()
    return KeptConsumers()
