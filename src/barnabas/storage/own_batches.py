"""What batches must be that this cluster's coordinators write: their records, and markers."""

from __future__ import annotations

from barnabas.errors import CorruptMessage, InvalidRecord, MessageTooLarge
from barnabas.records.batch import BatchHeader, read_header, verify_crc
from barnabas.records.control_records import Marker, read_marker
from barnabas.storage.batch_validation import Limits


def admit_own(records: memoryview, limits: Limits) -> BatchHeader:
    """Of a coordinator's batch, which this broker has built; MessageTooLarge."""
    if len(records) > min(limits.max_message_bytes, limits.segment_bytes):
        raise MessageTooLarge(f"a batch of {len(records)} bytes is too large for this topic")
    return read_header(records)


def admit_marker(records: memoryview) -> tuple[BatchHeader, Marker]:
    """Of a transaction's marker, which may come from another broker; CorruptMessage if it was
    damaged on its way, InvalidRecord if it is none."""
    header = read_header(records)
    if header.size_bytes != len(records) or not verify_crc(records, 0, header):
        raise CorruptMessage("a marker's batch fails its checksum")
    marker = read_marker(records, 0, header) if header.is_control else None
    if marker is None or header.producer_id < 0:
        raise InvalidRecord("not a transaction's marker")
    return header, marker
