"""Tracks the state of one partition's producers in order to detect duplicate batches (KIP-98,
PR-6).

For each producer id, the state contains the epoch, the last five data batches, the fields of the
last marker, and the open transaction. A client has at most five batches in flight, so a retry can
only repeat one of the last five. The response to the retry contains the offset that was assigned to
the first attempt.

Invariant: the state depends only on the batches below the log end. It is changed only by `apply`,
which treats new batches in the same way as batches that are replayed at startup. `check` does not
change it.

There may be half a million producers, most of which are idle. The state of each one is therefore
stored as bytes, so that a copy of the list is an immutable snapshot. The bytes start with the row
that represents the producer in a snapshot file.

    row, 46 bytes, see `snapshot` | batches, newest first, 24 bytes each: last sequence int32
    | last offset int64 | offset delta int32 | timestamp int64
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import NamedTuple

from barnabas.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
    UnknownProducerId,
)
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, TRANSACTIONAL, BatchHeader
from barnabas.records.control_records import Marker
from barnabas.storage.transaction_index import Ended, OpenTransactions

KEPT_BATCHES = 5
"""The number of batches to keep for each producer."""
_EXPIRED_AT_ONCE = 2000
_SEQUENCES = 2**31  # sequences wrap to 0 after 2^31-1

NO_OFFSET = NO_COORDINATOR_EPOCH = -1

ROW = Struct(">qhiqiqiq")
"""The layout of the row for one producer.

The row contains the producer id, the epoch, the last sequence number, the last offset, the offset
delta, the timestamp, the coordinator epoch, and the first offset of the transaction.
"""
_BATCH = Struct(">iqiq")
_KEPT_BYTES = ROW.size + KEPT_BATCHES * _BATCH.size
_OLD_BYTES = _KEPT_BYTES - _BATCH.size
# Structs for the fields that are read or written together for each batch. `_TO_CHECK` has the
# epoch, the last sequence number and the first offset of the transaction. `_TO_KEEP` has the epoch,
# the coordinator epoch and that offset. `_AGE` has the timestamp and that offset. `_STATE` is the
# row with the newest batch.
_TO_CHECK = Struct(">8xhi24xq").unpack_from
_TO_KEEP = Struct(">8xh24xiq").unpack_from
_AGE = Struct(">26xq4xq")
_STATE = Struct(">qhiqiqiqiqiq").pack
_NO_BATCH = (NO_SEQUENCE, NO_OFFSET, 0)


class Appended(NamedTuple):
    """Describes a data batch in the log."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    """The last offset minus the first offset, which is also the last sequence number minus the
    first one.
    """
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) % _SEQUENCES


class Producer:
    """A snapshot of the state of one producer id in this partition."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "timestamp", "transaction_offset")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: tuple[Appended, ...] = ()
        """The batches with the current epoch, from oldest to newest."""
        self.timestamp = -1
        """The timestamp (ms) of the producer's last batch or marker."""
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        """The epoch of the coordinator that wrote the last marker."""
        self.transaction_offset = NO_OFFSET
        """The offset at which the open transaction began."""

    @property
    def has_open_transaction(self) -> bool:
        return self.transaction_offset != NO_OFFSET

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


def _encode(producer_id: int, producer: Producer) -> bytes:
    batches = producer.batches[::-1]
    last = batches[0][:3] if batches else _NO_BATCH
    row = ROW.pack(
        producer_id,
        producer.epoch,
        *last,
        producer.timestamp,
        producer.coordinator_epoch,
        producer.transaction_offset,
    )
    return row + b"".join(_BATCH.pack(*each) for each in batches)


def _decode(state: bytes) -> Producer:
    _, epoch, _, _, _, timestamp, coordinator_epoch, began = ROW.unpack_from(state)
    producer = Producer(epoch)
    producer.batches = tuple(_batches(state))[::-1]
    producer.timestamp = timestamp
    producer.coordinator_epoch = coordinator_epoch
    producer.transaction_offset = began
    return producer


def _batches(state: bytes) -> Iterator[Appended]:
    """Yield the batches from newest to oldest."""
    return map(Appended._make, _BATCH.iter_unpack(memoryview(state)[ROW.size :]))


class Producers:
    """All producers of one partition by producer id."""

    __slots__ = ("_states", "_transactions")

    def __init__(self) -> None:
        self._states: dict[int, bytes] = {}
        self._transactions: OpenTransactions | None = None  # created with the first transaction

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[tuple[int, Producer]]:
        for producer_id in self.ids():
            producer = self.get(producer_id)
            if producer is not None:
                yield producer_id, producer

    def ids(self) -> list[int]:
        return list(self._states)

    def get(self, producer_id: int) -> Producer | None:
        state = self._states.get(producer_id)
        return None if state is None else _decode(state)

    def states(self) -> list[bytes]:
        """Return the current state of each producer. Each state begins with the producer's row in a
        snapshot.
        """
        return list(self._states.values())

    def take_over(self, producers: dict[int, Producer]) -> None:
        """Start with the states of these producers."""
        self._states = {each: _encode(each, producer) for each, producer in producers.items()}
        self._begin_all()

    def take_over_rows(self, rows: Iterable[bytes]) -> None:
        """Start with these rows from a snapshot.

        A row also describes the producer's last batch if it contains an offset for that batch.
        """
        states = {}
        for row in rows:
            producer_id, _, sequence, offset, delta, timestamp, _, _ = ROW.unpack(row)
            if offset != NO_OFFSET:
                row += _BATCH.pack(sequence, offset, delta, timestamp)
            states[producer_id] = row
        self._states = states
        self._begin_all()

    def _begin_all(self) -> None:
        began = []
        for producer_id, state in self._states.items():
            _, first_offset = _AGE.unpack_from(state)
            if first_offset != NO_OFFSET:
                began.append((first_offset, producer_id))
        for first_offset, producer_id in sorted(began):
            self._begin(producer_id, first_offset)

    def _begin(self, producer_id: int, first_offset: int) -> None:
        if self._transactions is None:
            self._transactions = OpenTransactions()
        self._transactions.begin(producer_id, first_offset)

    def stable_below(self, high_watermark: int) -> int:
        """Return the last stable offset, up to which read_committed consumers can read."""
        if self._transactions is None:
            return high_watermark
        return self._transactions.stable_below(high_watermark)

    def check(self, header: BatchHeader) -> Appended | None:
        """Check whether a producer's data batch can be appended.

        If the batch repeats a batch in the log, returns that batch. Raises InvalidProducerEpoch if
        the epoch is too old, OutOfOrderSequenceNumber if sequence numbers are missing,
        UnknownProducerId if the batch repeats one whose transaction has ended (decision 20), or
        InvalidTxnState if the producer has an open transaction that does not include the batch. An
        unknown producer may start at any sequence number, because retention may have removed its
        earlier batches (KIP-360).
        """
        state = self._states.get(header.producer_id)
        if state is None:
            return None
        epoch, last_sequence, began = _TO_CHECK(state)
        sequence = header.base_sequence
        # As in Kafka, check the epoch first, because a fenced producer must be notified before it
        # gets any other error.
        if header.producer_epoch == epoch:
            expected = (last_sequence + 1) % _SEQUENCES
            # If the batch continues the sequence, it is not a duplicate.
            if sequence != expected or last_sequence == NO_SEQUENCE:
                last = (sequence + header.last_offset_delta) % _SEQUENCES
                for batch in _batches(state):
                    if batch.last_sequence == last and batch.base_sequence == sequence:
                        # Reject a duplicate if its transaction has ended, because it would not be
                        # part of any transaction.
                        if header.is_transactional and not 0 <= began <= batch.base_offset:
                            raise _ended_transaction_error(header)
                        return batch
        elif header.producer_epoch < epoch:
            raise _fencing_error(header.producer_id, header.producer_epoch, epoch)
        else:
            # The first sequence number in a new epoch is 0.
            expected = 0
        # With epoch -1, any sequence number is valid, because the producer has not written data
        # yet.
        if sequence != expected and epoch != NO_PRODUCER_EPOCH:
            raise OutOfOrderSequenceNumber(
                f"producer {header.producer_id} sent sequence {sequence} in epoch "
                f"{header.producer_epoch}, expected {expected}"
            )
        if began != NO_OFFSET and not header.is_transactional:
            raise InvalidTxnState(
                f"producer {header.producer_id} has an open transaction since offset {began}; "
                "batches outside it are rejected"
            )
        return None

    def check_epoch(self, producer_id: int, producer_epoch: int) -> None:
        """Raise InvalidProducerEpoch if a batch without a sequence number has too old an epoch."""
        producer = self.get(producer_id)
        if producer is not None and producer_epoch < producer.epoch:
            raise _fencing_error(producer_id, producer_epoch, producer.epoch)

    def check_marker(self, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> None:
        """Check whether a marker from a transaction coordinator can be appended.

        Raises InvalidProducerEpoch if the epoch is too old, or TransactionCoordinatorFenced if a
        newer coordinator has already written a marker.
        """
        producer = self.get(producer_id)
        if producer is None:
            return
        if producer_epoch < producer.epoch:
            raise _fencing_error(producer_id, producer_epoch, producer.epoch)
        if coordinator_epoch < producer.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"producer {producer_id} has a marker with coordinator epoch "
                f"{producer.coordinator_epoch}; epoch {coordinator_epoch} is fenced"
            )

    def apply(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """Apply a producer's data batch from the log. The leader has already set its offset and its
        time.
        """
        producer_id = header.producer_id
        producer_epoch = header.producer_epoch
        state = self._states.get(producer_id)
        older = b""
        coordinator_epoch, began = NO_COORDINATOR_EPOCH, NO_OFFSET
        if state is not None:
            epoch, coordinator_epoch, began = _TO_KEEP(state)
            # The older epoch is fenced, so its batches can no longer be retried.
            if epoch == producer_epoch:
                older = state[ROW.size : _OLD_BYTES]
        delta = header.last_offset_delta
        sequence = header.base_sequence
        if sequence != NO_SEQUENCE:  # a batch from a coordinator may have none
            sequence = (sequence + delta) % _SEQUENCES
        # This batch begins a transaction. Until the transaction ends, no record from this batch on
        # is stable (CO-6).
        if header.attributes & TRANSACTIONAL and began == NO_OFFSET:
            began = base_offset
            self._begin(producer_id, base_offset)
        offset = base_offset + delta
        self._states[producer_id] = (
            _STATE(
                producer_id,
                producer_epoch,
                sequence,
                offset,
                delta,
                timestamp,
                coordinator_epoch,
                began,
                sequence,
                offset,
                delta,
                timestamp,
            )
            + older
        )

    def apply_marker(self, producer_id: int, producer_epoch: int, marker: Marker) -> Ended | None:
        """Apply a transaction marker from the log, and return the transaction that it has ended.

        If the marker bumps the epoch, the sequence numbers are reset.
        """
        producer = self.get(producer_id)
        if producer is None:
            producer = Producer(producer_epoch)
        # The coordinator has bumped the epoch. This fences the producer and resets its sequence
        # numbers.
        elif producer.epoch != producer_epoch:
            producer.epoch = producer_epoch
            producer.batches = ()
        producer.timestamp = marker.timestamp_ms
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.transaction_offset = NO_OFFSET
        self._states[producer_id] = _encode(producer_id, producer)
        if self._transactions is None:
            return None
        return self._transactions.end(producer_id, marker.offset)

    def expire(self, before_ms: int) -> None:
        """Remove the producers whose last record is older than this, except those with an open
        transaction.
        """
        for _ in self.expiring(before_ms):
            pass

    def expiring(self, before_ms: int) -> Iterator[None]:
        """Do the same as `expire`, but in steps of one millisecond, so that producers can write in
        between.
        """
        states = self._states
        ids = list(states)
        while ids:
            for producer_id in ids[-_EXPIRED_AT_ONCE:]:
                state = states.get(producer_id)
                if state is not None:
                    timestamp, began = _AGE.unpack_from(state)
                    # If a transaction is open, keep the producer, because the marker may still
                    # arrive.
                    if timestamp <= before_ms and began == NO_OFFSET:
                        del states[producer_id]
            del ids[-_EXPIRED_AT_ONCE:]  # freeing all of them at the end would take too long
            yield


def _ended_transaction_error(header: BatchHeader) -> UnknownProducerId:
    return UnknownProducerId(
        f"producer {header.producer_id} repeated sequence {header.base_sequence} of epoch "
        f"{header.producer_epoch}, which belongs to a transaction that has ended"
    )


def _fencing_error(producer_id: int, producer_epoch: int, current: int) -> InvalidProducerEpoch:
    return InvalidProducerEpoch(
        f"producer {producer_id} has epoch {current}; epoch {producer_epoch} is fenced"
    )
