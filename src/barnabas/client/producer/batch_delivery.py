"""Reports outcomes per batch instead of per record, for bulk senders."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.delivery import Delivery, call_back, until_done
from barnabas.counted import counted
from barnabas.errors import BarnabasError
from barnabas.shielded import again


class BatchDelivery:
    """The outcome of several records in one batch. Await it to get the offsets or the error.

    `indexes` are the positions of these records among the records passed by the caller, in order.
    After an error, send the records at `failed_indexes` again.
    """

    __slots__ = ("_error", "batch", "indexes", "places")

    _error: BarnabasError  # a separate copy, created on request

    def __init__(self, batch: ProducerBatch, indexes: Sequence[int], places: Sequence[int]) -> None:
        self.batch = batch
        self.indexes = indexes
        self.places = places  # the records' indexes in the batch

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
        """The offsets of the records, in the order of `indexes`; -1 if unknown or with acks=0."""
        # The parts of a split batch are stored separately, perhaps with other records in between.
        if self.batch.parts:
            found = map(self.batch.at, self.places)
            return [part.base_offset + at if part.base_offset >= 0 else -1 for part, at in found]
        base = self.batch.base_offset
        return [base + place if base >= 0 else -1 for place in self.places]

    @property
    def failed_indexes(self) -> list[int]:
        """Return those `indexes` whose records are not stored.

        This is all or none of them, unless the broker rejected individual records as too large.
        """
        pairs = zip(self.indexes, self.places, strict=True)
        return [index for index, place in pairs if self.batch.at(place)[0].error is not None]

    def done(self) -> bool:
        return self.batch.done

    def exception(self) -> BarnabasError | None:
        """Return why some or all records failed, or None if they are stored or not `done()` yet."""
        if self.batch.error is None:
            return None
        try:
            return self._error
        except AttributeError:
            error = self._error = again(self.batch.error)
            return error

    def __repr__(self) -> str:
        state = "waiting" if not self.done() else "failed" if self.batch.error else "stored"
        return f"BatchDelivery({self.place()}, {state})"

    def __await__(self) -> Generator[Any, None, list[int]]:
        if not self.batch.done:
            yield from until_done(self.batch).__await__()
        error = self.exception()
        if error is not None:
            raise error.with_traceback(None)
        return self.offsets

    def place(self) -> str:
        return f"{counted(len(self.places), 'record')} for {self.batch.topic_partition}"


OnDelivery = Callable[[BatchDelivery], Any]


class BatchDeliveries:
    """Collects the deliveries of one `send_many` call, and reports each batch once it is done."""

    def __init__(self, on_delivery: OnDelivery) -> None:
        self._on_delivery = on_delivery
        self._open: dict[ProducerBatch, tuple[list[int], list[int]]] = {}
        self._count = 0

    def add(self, delivery: Delivery) -> None:
        """Record that the next record has been queued."""
        batch = delivery.batch
        lists = self._open.get(batch)
        is_first = lists is None
        if lists is None:
            lists = self._open[batch] = [], []
        lists[0].append(self._count)
        lists[1].append(delivery.index)
        self._count += 1
        if is_first:
            # Register the callback last, because a batch that is done reports immediately and needs
            # its first index.
            batch.when_done(lambda: self._done(batch))

    def _done(self, batch: ProducerBatch) -> None:
        delivery = BatchDelivery(batch, *self._open.pop(batch))
        call_back(self._on_delivery, delivery)
