"""The outcome of all records of one call that share a batch, for callers that send many."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.delivery import call_back, until_done
from barnabas.errors import BarnabasError


class BatchDelivery:
    """The outcome of several records at once; await it for the offsets, or its error.

    `indexes` are their places among the records that were given, in order: where the outcome is an
    error, these are to be sent again.
    """

    __slots__ = ("batch", "indexes", "places")

    def __init__(self, batch: ProducerBatch, indexes: Sequence[int], places: Sequence[int]) -> None:
        self.batch = batch
        self.indexes = indexes
        self.places = places  # in the batch

    @property
    def topic(self) -> str:
        return self.batch.topic_partition.topic

    @property
    def partition(self) -> int:
        return self.batch.topic_partition.partition

    @property
    def record_count(self) -> int:
        return len(self.places)

    @property
    def offsets(self) -> list[int]:
        """The records' offsets, as `indexes`; -1 each while unknown, and with acks=0."""
        base = self.batch.base_offset
        return [base + place if base >= 0 else -1 for place in self.places]

    def done(self) -> bool:
        return self.batch.done

    def exception(self) -> BarnabasError | None:
        """Why the records failed; None if they are stored, or not `done()` yet."""
        return self.batch.error

    def __repr__(self) -> str:
        state = "waiting" if not self.done() else "failed" if self.batch.error else "stored"
        return f"BatchDelivery({self.place()}, {state})"

    def __await__(self) -> Generator[Any, None, list[int]]:
        if not self.batch.done:
            yield from until_done(self.batch).__await__()
        if self.batch.error is not None:
            raise self.batch.error
        return self.offsets

    def place(self) -> str:
        return f"{len(self.places)} records for {self.batch.topic_partition}"


OnDelivery = Callable[[BatchDelivery], Any]


class BatchDeliveries:
    """Collects those of one `send_many`: each is reported once its batch has an outcome."""

    def __init__(self, on_delivery: OnDelivery) -> None:
        self._on_delivery = on_delivery
        self._open: dict[ProducerBatch, tuple[list[int], list[int]]] = {}

    def add(self, index: int, batch: ProducerBatch, place: int) -> None:
        """The record of that index is at that place of a batch."""
        lists = self._open.get(batch)
        if lists is None:
            lists = self._open[batch] = [], []
            batch.when_done(lambda: self._done(batch))
        lists[0].append(index)
        lists[1].append(place)

    def _done(self, batch: ProducerBatch) -> None:
        delivery = BatchDelivery(batch, *self._open.pop(batch))
        call_back(self._on_delivery, delivery, delivery.place)
