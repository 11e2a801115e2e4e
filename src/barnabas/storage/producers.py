"""Producer sequences of one partition: what makes a retried batch harmless (KIP-98, PR-6).

Owns, per producer id, the epoch, the last five data batches, what markers leave behind, and the
transaction that is open. A client has at most five batches in flight, so a retry is always one of
the last five; it is answered with the offset that the first attempt got.

Invariant: this state is a function of the batches below the log end. It changes in `apply` alone,
for a batch that was just written and for one replayed at start alike; `check` only looks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, TRANSACTIONAL, BatchHeader
from barnabas.records.control import Marker
from barnabas.storage.transactions import Ended, OpenTransactions

_KEPT_BATCHES = 5
_SEQUENCES = 2**31  # after 2^31-1 comes 0

NO_OFFSET = NO_COORDINATOR_EPOCH = -1


class Appended(NamedTuple):
    """A data batch that is in the log."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    """Last offset minus first, and last sequence minus first alike."""
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % _SEQUENCES


class Producer:
    """What one producer id has written to this partition."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "timestamp", "transaction_offset")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: tuple[Appended, ...] = ()
        """Of the current epoch, oldest first."""
        self.timestamp = -1
        """Of its last batch or marker, in ms; from the records, not from the clock."""
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        """The last marker's."""
        self.transaction_offset = NO_OFFSET
        """Where its open transaction began."""

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


class Producers:
    """All producers of one partition, by id."""

    __slots__ = ("_producers", "_transactions")

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}
        self._transactions: OpenTransactions | None = None  # made with the first one

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[tuple[int, Producer]]:
        return iter(self._producers.items())

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def take_over(self, producers: dict[int, Producer]) -> None:
        """Begin with these, of a snapshot."""
        self._producers = producers
        began = [
            (producer.transaction_offset, producer_id)
            for producer_id, producer in producers.items()
            if producer.transaction_offset != NO_OFFSET
        ]
        for first_offset, producer_id in sorted(began):
            self._begin(producer_id, first_offset)

    def _begin(self, producer_id: int, first_offset: int) -> None:
        if self._transactions is None:
            self._transactions = OpenTransactions()
        self._transactions.begin(producer_id, first_offset)

    def stable_below(self, high_watermark: int) -> int:
        """The last stable offset: where readers of committed records have to stop."""
        if self._transactions is None:
            return high_watermark
        return self._transactions.stable_below(high_watermark)

    def check(self, header: BatchHeader) -> Appended | None:
        """Whether this producer's data batch may be appended.

        Returns the batch in the log of which it is a repetition, else None. Raises
        InvalidProducerEpoch for an older epoch, OutOfOrderSequenceNumber for a gap, and
        InvalidTxnState for a batch outside of the transaction that the producer has open. A
        producer that is not known may begin anywhere: retention may have removed what it wrote
        (KIP-360).
        """
        producer = self._producers.get(header.producer_id)
        if producer is None:
            return None
        sequence = header.base_sequence
        if header.producer_epoch == producer.epoch:
            last = (sequence + header.last_offset_delta) % _SEQUENCES
            for batch in reversed(producer.batches):
                if batch.last_sequence == last and batch.base_sequence == sequence:
                    return batch
            expected = (producer.last_sequence + 1) % _SEQUENCES
        elif header.producer_epoch < producer.epoch:
            raise _fenced(header.producer_id, header.producer_epoch, producer.epoch)
        else:
            expected = 0
        if sequence != expected and producer.epoch != NO_PRODUCER_EPOCH:
            raise OutOfOrderSequenceNumber(
                f"producer {header.producer_id} sent sequence {sequence} in epoch "
                f"{header.producer_epoch}, not {expected}"
            )
        if producer.transaction_offset != NO_OFFSET and not header.is_transactional:
            raise InvalidTxnState(
                f"producer {header.producer_id} has had a transaction open since offset "
                f"{producer.transaction_offset}; a batch outside of it is refused"
            )
        return None

    def check_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Whether a batch without a sequence may be appended for a producer; as `check`."""
        producer = self._producers.get(producer_id)
        if producer is not None and producer_epoch < producer.epoch:
            raise _fenced(producer_id, producer_epoch, producer.epoch)

    def check_marker(self, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> None:
        """Whether a coordinator's marker may be appended; InvalidProducerEpoch, or
        TransactionCoordinatorFenced if a later coordinator has written one already."""
        producer = self._producers.get(producer_id)
        if producer is None:
            return
        if producer_epoch < producer.epoch:
            raise _fenced(producer_id, producer_epoch, producer.epoch)
        if coordinator_epoch < producer.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"producer {producer_id} has a marker of coordinator epoch "
                f"{producer.coordinator_epoch} here; {coordinator_epoch} is fenced"
            )

    def apply(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """A producer's data batch is in the log; the leader gave it this offset and time."""
        producer = self._producers.get(header.producer_id)
        if producer is None:
            producer = self._producers[header.producer_id] = Producer(header.producer_epoch)
        elif producer.epoch != header.producer_epoch:
            producer.epoch = header.producer_epoch
            producer.batches = ()
        delta = header.last_offset_delta
        sequence = header.base_sequence
        if sequence != NO_SEQUENCE:  # a coordinator's batch may have none
            sequence = (sequence + delta) % _SEQUENCES
        appended = Appended(sequence, base_offset + delta, delta, timestamp)
        producer.batches = (*producer.batches[1 - _KEPT_BATCHES :], appended)
        producer.timestamp = timestamp
        if header.attributes & TRANSACTIONAL and producer.transaction_offset == NO_OFFSET:
            producer.transaction_offset = base_offset
            self._begin(header.producer_id, base_offset)

    def apply_marker(self, producer_id: int, producer_epoch: int, marker: Marker) -> Ended | None:
        """A transaction marker is in the log; returns what it ended.

        A bumped epoch in it starts sequences anew.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = Producer(producer_epoch)
        elif producer.epoch != producer_epoch:
            producer.epoch = producer_epoch
            producer.batches = ()
        producer.timestamp = marker.timestamp_ms
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.transaction_offset = NO_OFFSET
        if self._transactions is None:
            return None
        return self._transactions.end(producer_id, marker.offset)

    def expire(self, before_ms: int) -> None:
        """Forget producers whose last record is older, unless their transaction is open."""
        for producer_id, producer in list(self._producers.items()):
            if producer.timestamp <= before_ms and producer.transaction_offset == NO_OFFSET:
                del self._producers[producer_id]


def _fenced(producer_id: int, producer_epoch: int, current: int) -> InvalidProducerEpoch:
    return InvalidProducerEpoch(
        f"producer {producer_id} has epoch {current} here; {producer_epoch} is fenced"
    )
