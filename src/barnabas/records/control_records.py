"""Reads and builds control records, which are the markers that end transactions in a partition
(KIP-98).

    key    version int16 (0) | type int16
    value  version int16 (0) | coordinator epoch int32       for ABORT and COMMIT

A control batch contains one record, which has an offset like any other record. KRaft writes other
types of control records, which readers skip.
"""

from __future__ import annotations

from struct import Struct, error
from typing import NamedTuple

from barnabas.errors import CorruptData
from barnabas.records.batch import (
    CONTROL,
    NO_LEADER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL,
    BatchHeader,
    seal,
)
from barnabas.records.crc32c import Buffer
from barnabas.records.record import BatchBuilder, records_of

ABORT, COMMIT = 0, 1

_KEY = Struct(">hh")
_VALUE = Struct(">hi")
_VERSION = 0
_LIMIT_BYTES = 64 * 1024


class Marker(NamedTuple):
    """Marks the end of a producer's transaction in one partition."""

    offset: int
    timestamp_ms: int
    type: int
    """ABORT or COMMIT."""
    coordinator_epoch: int
    """The epoch of the transaction coordinator. It fences coordinators that have a lower epoch."""


def read_marker(buffer: Buffer, position: int, header: BatchHeader) -> Marker | None:
    """Return the marker that the control batch at `position` contains.

    Returns None if it contains another control record, or no record because of compaction. Raises
    CorruptData if the record is malformed.
    """
    for record in records_of(buffer, position, header, _LIMIT_BYTES):
        try:
            _, kind = _KEY.unpack_from(record.key or b"")
            # A Kafka broker in KRaft mode has written this record, for example for a leader change
            # or a snapshot.
            if kind not in (ABORT, COMMIT):
                return None
            _, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
        except error as cause:
            raise CorruptData(f"the control record at {record.offset} is truncated") from cause
        return Marker(record.offset, record.timestamp, kind, coordinator_epoch)
    return None


def build_marker(marker: Marker, producer_id: int, producer_epoch: int) -> bytes:
    """Build a control batch that ends a transaction of this producer."""
    record = BatchBuilder()
    record.append(
        marker.timestamp_ms,
        _KEY.pack(_VERSION, marker.type),
        _VALUE.pack(_VERSION, marker.coordinator_epoch),
    )
    header = BatchHeader(
        base_offset=marker.offset,
        batch_length=0,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=2,
        crc=0,
        attributes=CONTROL | TRANSACTIONAL,
        last_offset_delta=0,
        base_timestamp=marker.timestamp_ms,
        max_timestamp=marker.timestamp_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=NO_SEQUENCE,
        record_count=1,
    )
    return seal(header, record.body)
