"""What a producer's batch must be before the leader appends it.

Header and checksum are looked at, records are not: sixteen KiB pass in a few microseconds. Each
refusal is the row of Kafka's errors that its broker answers, for clients act by it.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.config import LogConfig
from barnabas.errors import (
    CorruptData,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    InvalidTxnState,
    MessageTooLarge,
    RecordListTooLarge,
    UnsupportedCompressionType,
)
from barnabas.records.batch import (
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    BatchHeader,
    read_header,
    verify_crc,
)
from barnabas.records.compression import CODEC_NAMES
from barnabas.storage.index import OFFSET_ENTRY, TIME_ENTRY

_SPECIAL = LOG_APPEND_TIME | TRANSACTIONAL | CONTROL


class Limits(NamedTuple):
    """The part of a log's configuration that is asked for each batch."""

    max_message_bytes: int
    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    index_interval_bytes: int
    index_entries: int
    time_index_entries: int
    """One slot of the time index is kept for the entry that closing adds."""
    is_log_append_time: bool

    @classmethod
    def of(cls, config: LogConfig) -> Limits:
        return cls(
            config.max_message_bytes,
            config.segment_bytes,
            config.segment_ms,
            config.segment_jitter_ms,
            config.index_interval_bytes,
            config.segment_index_bytes // OFFSET_ENTRY.size,
            config.segment_index_bytes // TIME_ENTRY.size - 1,
            config.message_timestamp_type == "LogAppendTime",
        )


def admit(records: memoryview, limits: Limits) -> BatchHeader:
    """The header of the one batch that `records` is; raises what the producer is to be told."""
    try:
        header = read_header(records)
    except CorruptData as cause:
        raise CorruptMessage(str(cause)) from cause
    size = header.batch_length + 12
    if (
        header.magic != 2
        or header.base_offset != 0
        or header.record_count != header.last_offset_delta + 1
        or header.record_count < 1
        or header.attributes & _SPECIAL
        or header.attributes & CODEC_MASK >= len(CODEC_NAMES)
        or (header.producer_id >= 0 and header.base_sequence < 0)
        or size != len(records)
    ):
        _refuse(records, header)
    if size > limits.max_message_bytes:
        raise MessageTooLarge(
            f"the batch has {size} bytes, max.message.bytes allows {limits.max_message_bytes}"
        )
    if size > limits.segment_bytes:
        raise RecordListTooLarge(
            f"the batch has {size} bytes, a segment of this topic {limits.segment_bytes}"
        )
    if not verify_crc(records, 0, header):
        raise CorruptMessage("the record batch fails its checksum")
    return header


def _refuse(records: memoryview, header: BatchHeader) -> None:
    """Find out what is wrong with a batch of which something is."""
    if header.magic != 2:
        raise InvalidRecord(f"a batch has magic {header.magic}; only 2 may be produced")
    if header.size_bytes > len(records):
        raise CorruptMessage(f"a batch of {header.size_bytes} bytes in {len(records)}")
    if not verify_crc(records, 0, header):
        raise CorruptMessage("the record batch fails its checksum")
    if header.size_bytes < len(records):
        raise InvalidRecord("a produce request must have exactly one batch per partition")
    if header.codec >= len(CODEC_NAMES):
        raise UnsupportedCompressionType(f"no codec has the number {header.codec}")
    if header.is_control:
        raise InvalidRecord("clients may not write control records")
    if header.is_transactional:
        raise InvalidTxnState("the batch belongs to a transaction that was not begun here")
    if header.has_log_append_time:
        raise InvalidTimestamp("a producer may not claim the log-append time")
    if header.base_offset != 0:
        raise InvalidRecord(f"the base offset of a batch must be 0, not {header.base_offset}")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise InvalidRecord(f"a producer cannot have the sequence {header.base_sequence}")
    raise InvalidRecord(
        f"a batch claims {header.record_count} records and ends at delta {header.last_offset_delta}"
    )
