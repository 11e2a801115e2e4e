"""Rewrites a batch without its obsolete records, byte for byte as Kafka 3.9 does (KIP-534).

The rewritten batch keeps its codec and also its first and last offsets, from which sequence numbers
are derived. Its base timestamp is set to the timestamp of the first remaining record, or to the
delete horizon. If that changes the base timestamp, the timestamp deltas are recomputed; otherwise,
the records are copied unchanged.

    attributes bit 6    the base timestamp is a delete horizon: the time from which tombstones, or
                        the marker in the batch, may be removed

If no record remains, the result is a header without a codec and without a base timestamp, but with
the old max timestamp. Messages of magic 0 and 1 have no field for a delete horizon, and a set of
them cannot have gaps between offsets. The remaining messages of a set are therefore written as one
batch of magic 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from barnabas.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    NO_LEADER_EPOCH,
    NO_TIMESTAMP,
    BatchHeader,
    seal,
)
from barnabas.records.compression import NONE, compress
from barnabas.records.record import LOG_APPEND_TIME_TYPE, Record
from barnabas.records.varint import append_varint, finish_varint, read_varint
from barnabas.storage.compaction.sieve import Section, Sifted

NO_HORIZON = -1


def rebuild(section: Section, sifted: Sifted, horizon_ms: int) -> bytes:
    """Return a batch that contains only the records to keep (at least one) and the delete horizon,
    if there is one.
    """
    header = section.header
    attributes = header.attributes & ~DELETE_HORIZON
    if horizon_ms != NO_HORIZON:
        attributes |= DELETE_HORIZON
    if header.has_log_append_time:
        # All records have the append time, so it has to be stored in each record.
        max_timestamp = header.max_timestamp
        base_timestamp = max_timestamp if horizon_ms == NO_HORIZON else horizon_ms
        pieces = _retime(section, sifted, None, max_timestamp - base_timestamp)
    else:
        max_timestamp = max(NO_TIMESTAMP, header.base_timestamp + sifted.max_delta)
        base_timestamp = horizon_ms
        if horizon_ms == NO_HORIZON:
            base_timestamp = header.base_timestamp + sifted.first_delta
        shift = header.base_timestamp - base_timestamp
        # The base timestamp has changed, so recompute every delta.
        if shift:
            pieces = _retime(section, sifted, shift, 0)
        else:
            pieces = (section.data[begin:end] for begin, end in sifted.runs)
    body = b"".join(pieces)
    kept = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        record_count=sifted.kept,
    )
    return seal(kept, body if header.codec == NONE else compress(header.codec, body))


def _retime(
    section: Section, sifted: Sifted, shift: int | None, delta: int
) -> Iterator[bytes | bytearray]:
    """Yield the remaining records with new timestamp deltas: `delta`, or the old delta plus
    `shift`.
    """
    data = section.data
    for begin, end in sifted.runs:
        at = begin
        while at < end:
            size, at = read_varint(data, at)
            following = at + size
            time, rest = data[at + 1], at + 2
            if time >= 0x80:
                time, rest = finish_varint(data, rest, time)
            fields = bytearray(data[at : at + 1])
            append_varint(fields, delta if shift is None else ((time >> 1) ^ -(time & 1)) + shift)
            record = bytearray()
            append_varint(record, len(fields) + following - rest)
            record += fields
            yield record
            yield data[rest:following]
            at = following


def empty_batch(header: BatchHeader) -> bytes:
    """Return the batch without records. It is kept because its header is part of the producer
    state.
    """
    # As in Kafka, remove the codec, because there is nothing to compress.
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON)
    empty = header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0)
    return seal(empty, b"")


def convert_messages(records: Sequence[Record], codec: int, horizon_ms: int) -> bytes:
    """Convert the messages to keep (at least one) from magic 0 or 1 to a batch of magic 2."""
    first, last = records[0], records[-1]
    base_timestamp = first.timestamp if horizon_ms == NO_HORIZON else horizon_ms
    is_stamped = first.timestamp_type == LOG_APPEND_TIME_TYPE
    body = bytearray()
    for record in records:
        fields = bytearray(1)  # attributes
        append_varint(fields, record.timestamp - base_timestamp)
        append_varint(fields, record.offset - first.offset)
        for blob in (record.key, record.value):
            append_varint(fields, -1 if blob is None else len(blob))
            fields += blob or b""
        fields.append(0)  # headers
        append_varint(body, len(fields))
        body += fields
    header = BatchHeader(
        base_offset=first.offset,
        batch_length=0,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=2,
        crc=0,
        attributes=codec
        | (LOG_APPEND_TIME if is_stamped else 0)
        | (0 if horizon_ms == NO_HORIZON else DELETE_HORIZON),
        last_offset_delta=last.offset - first.offset,
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=len(records),
    )
    return seal(header, body if codec == NONE else compress(codec, body))
