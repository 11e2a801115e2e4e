"""Converts record batches, such as those fetched by a Spark task, to Arrow columns.

The decoding is vectorised. Invariant: the columns contain exactly the rows that `iterate_records`
yields for the same bytes, in the same order. The tests compare the two. A fault in a batch whose
checksum is valid is not always detected, but malicious bytes never cause any error other than
`CorruptData`.

A record of a batch (magic 2; every length and delta is a zigzag varint):

    length | attributes int8 | timestamp delta | offset delta
           | key length, key | value length, value | header count, headers

Records of a batch follow one another without a gap. If they have one size, as is common for one
producer, `record_tables.py` reads them as tables in place. Otherwise the batches of a fetch are
stripped of their headers, decompressed and joined into one buffer (`octets`), and `fields.py`
computes each column over all of them together, because the overhead of a dozen numpy calls per
batch would be too high. The only Python code that runs per record is the walk from one length to
the next, and that runs only if records differ in size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]  # ships neither stubs nor py.typed

from barnabas.counted import counted
from barnabas.errors import CorruptData
from barnabas.records.batch import HEADER_BYTES, BatchHeader, iterate_batches, verify_crc
from barnabas.records.compression import NONE, decompress
from barnabas.records.control_records import ABORT, read_marker
from barnabas.records.fields import (
    PADDING,
    Blobs,
    Integers,
    Octets,
    any_fields,
    binary,
    read_blobs,
    record_starts,
    varints,
)
from barnabas.records.layout_classes import uniform_fields
from barnabas.records.record import DEFAULT_LIMIT_BYTES, Record, records_of
from barnabas.records.record_tables import rows_of

ALL_OFFSETS = range(2**63 - 1)
_GROUP_BYTES = 32 * 1024 * 1024
_GROUP_RECORDS = 65_536
_MIN_RECORD_BYTES = 7
_NO_TIMESTAMP_TYPE = -1
_MAX_TIMESTAMP_MS = (2**63 - 1) // 1000

_TIMESTAMP = pa.timestamp("ms", "UTC")
_MICROSECONDS = pa.timestamp("us", "UTC")
_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])


class Columns(NamedTuple):
    """Records as Arrow arrays of equal length, in the order of the log."""

    keys: pa.Array
    """The keys (binary). The key is null if the record has none."""
    values: pa.Array
    """The values (binary). The value of a tombstone is null."""
    offsets: pa.Array
    """The offsets (int64)."""
    timestamps: pa.Array
    """The timestamps as timestamp("ms", "UTC"). They may have any int64 value; `microseconds`
    converts them for Spark.
    """
    timestamp_types: pa.Array
    """int32: 0 is the producer's time (CreateTime), 1 the broker's (LogAppendTime), -1 none."""
    headers: pa.Array | None
    """The headers as list<struct<key: string, value: binary>>. The list is null if a record has no
    headers. None if headers were not requested.
    """


def iterate_columns(
    batches: bytes | bytearray | memoryview,
    offsets: range = ALL_OFFSETS,
    *,
    aborted: Sequence[tuple[int, int]] = (),
    with_headers: bool = False,
    check_crc: bool = True,
) -> Iterator[Columns]:
    """Yield columns of all records whose offsets are in `offsets`, which is a range with step 1.

    `batches` contains concatenated batches with any codecs, as in a fetch response; the last batch
    may be incomplete. Control batches are skipped, because they contain no records for users. The
    batches of `aborted` transactions are skipped as well. Each of these transactions consists of a
    producer id and a first offset, as in the response to a read_committed fetch (KIP-98). Each
    group of columns is never empty and has about 65,536 rows; the number varies, because a batch is
    never split. Raises `CorruptData` if the bytes are malformed.
    """
    view = memoryview(batches)
    group: list[_Section] = []
    group_bytes = group_records = 0
    for position, header in _wanted_batches(view, offsets, aborted):
        if check_crc and not verify_crc(view, position, header):
            raise CorruptData(f"the batch at offset {header.base_offset} fails its checksum")
        if header.magic == 2:
            group.append(_Section(header, _records_of(view, position, header)))
            group_bytes += len(group[-1].records)
            group_records += header.record_count
            if group_bytes < _GROUP_BYTES and group_records < _GROUP_RECORDS:
                continue
        yield from _decode(group, offsets, with_headers)
        group = []
        group_bytes = group_records = 0
        if header.magic != 2:
            yield from _decode_legacy(view, position, header, offsets, with_headers)
    yield from _decode(group, offsets, with_headers)


def _wanted_batches(
    view: memoryview, within: range, aborted: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, BatchHeader]]:
    ahead = sorted((first_offset, producer) for producer, first_offset in aborted)[::-1]
    aborting: set[int] = set()
    for position, header in iterate_batches(view):
        # A broker sends whole batches, so the first batch may begin below the requested offset.
        if header.last_offset < within.start:
            continue
        if header.magic == 2 and header.base_offset >= within.stop:
            return  # an older message shows only its end offset; its records may be earlier
        # From this first offset on, the producer's data is skipped up to its ABORT marker.
        while ahead and ahead[-1][0] <= header.last_offset:
            aborting.add(ahead.pop()[1])
        if header.is_control:
            marker = read_marker(view, position, header) if aborting else None
            if marker is not None and marker.type == ABORT:
                aborting.discard(header.producer_id)
        elif header.record_count and not (
            header.is_transactional and header.producer_id in aborting
        ):
            yield position, header


class _Section(NamedTuple):
    """Represents the header of a batch and its decompressed records."""

    header: BatchHeader
    records: bytes | memoryview


def _records_of(view: memoryview, position: int, header: BatchHeader) -> bytes | memoryview:
    records: bytes | memoryview
    records = view[position + HEADER_BYTES : position + header.size_bytes]
    if header.codec != NONE:
        records = decompress(header.codec, records, DEFAULT_LIMIT_BYTES)
    if not 0 <= header.record_count * _MIN_RECORD_BYTES <= len(records):
        raise CorruptData(
            f"the batch at offset {header.base_offset} has {counted(header.record_count, 'record')}"
            f" in {len(records)} bytes"
        )
    return records


def _decode(group: list[_Section], within: range, with_headers: bool) -> Iterator[Columns]:
    if not group:
        return
    counts = [section.header.record_count for section in group]
    rows = None if with_headers else rows_of([section.records for section in group], counts)
    if rows is None:
        yield from _decode_any(group, within, with_headers)
        return
    offsets = _per_record([s.header.base_offset for s in group], counts) + rows.offset_deltas
    timestamps, types = _timestamps(group, counts, rows.time_deltas)
    columns = Columns(
        keys=rows.keys,
        values=rows.values,
        offsets=pa.array(offsets),
        timestamps=pa.array(timestamps).view(_TIMESTAMP),
        timestamp_types=pa.array(types),
        headers=None,
    )
    wanted = _wanted_rows(offsets, within)
    if wanted.size == offsets.size:
        yield columns
    elif wanted.size:
        yield Columns(*(None if column is None else column.take(wanted) for column in columns))


def _decode_any(group: list[_Section], within: range, with_headers: bool) -> Iterator[Columns]:
    """Decode records of any size, which are joined in one buffer, one field at a time."""
    data = b"".join([*(section.records for section in group), PADDING])
    octets = np.frombuffer(data, np.uint8)
    counts = [section.header.record_count for section in group]
    starts = record_starts(data, [len(section.records) for section in group], counts)
    # each record begins where the previous one ended
    ends = np.append(starts[1:], len(data) - len(PADDING))
    fields = uniform_fields(data, octets, starts) or any_fields(octets, starts, ends)
    offsets = _per_record([s.header.base_offset for s in group], counts) + fields.offset_deltas
    timestamps, types = _timestamps(group, counts, fields.time_deltas)
    keys, values, cursor = fields.keys, fields.values, fields.cursor

    wanted = _wanted_rows(offsets, within)
    if not wanted.size:
        return
    if wanted.size < offsets.size:
        offsets, timestamps, types = offsets[wanted], timestamps[wanted], types[wanted]
        keys, values = keys.at(wanted), values.at(wanted)
        cursor, ends = cursor[wanted], ends[wanted]

    yield Columns(
        keys=binary(octets, keys),
        values=binary(octets, values),
        offsets=pa.array(offsets),
        timestamps=pa.array(timestamps).view(_TIMESTAMP),
        timestamp_types=pa.array(types),
        headers=_headers(octets, cursor, ends) if with_headers else None,
    )


def _wanted_rows(offsets: Integers, within: range) -> Integers:
    return np.flatnonzero((offsets >= within.start) & (offsets < within.stop))


def _per_record(of_batches: list[int], counts: list[int]) -> Integers:
    return np.repeat(np.array(of_batches, np.int64), counts)


def _timestamps(
    group: list[_Section], counts: list[int], deltas: Integers
) -> tuple[Integers, npt.NDArray[np.int32]]:
    """Return the timestamps (ms) and the timestamp types.

    With LogAppendTime, all records have the max timestamp from the header.
    """
    headers = [section.header for section in group]
    timestamps = _per_record([header.base_timestamp for header in headers], counts) + deltas
    types = np.zeros(len(deltas), np.int32)
    if any(header.has_log_append_time for header in headers):
        appended = _per_record([header.has_log_append_time for header in headers], counts) == 1
        at = _per_record([header.max_timestamp for header in headers], counts)
        timestamps = np.where(appended, at, timestamps)
        types[appended] = 1
    return timestamps, types


def microseconds(timestamps: pa.Array) -> pa.Array:
    """Convert `Columns.timestamps` to timestamp("us", "UTC")."""
    # A producer may write any int64, so limit the values to those that fit into microseconds.
    times_ms = np.asarray(timestamps.view(pa.int64()))
    times_us = np.clip(times_ms, -_MAX_TIMESTAMP_MS, _MAX_TIMESTAMP_MS) * 1000
    return pa.array(times_us).view(_MICROSECONDS)


def _headers(octets: Octets, cursor: Integers, ends: Integers) -> pa.Array:
    """Return one list of headers per record. Round n decodes header n of all records that have at
    least n headers.
    """
    if (cursor >= ends).any():
        raise CorruptData("a record ends before its fields do")
    counts, cursor = varints(octets, cursor)
    if (counts < 0).any() or (counts > (ends - cursor) // 2).any():
        raise CorruptData("a record has more headers than fit into it")
    rows: list[Integers] = []
    keys: list[Blobs] = []
    values: list[Blobs] = []
    having = np.flatnonzero(counts)
    cursor, ends = cursor[having], ends[having]
    while having.size:
        key, cursor = read_blobs(octets, cursor, ends)
        if (key.lengths < 0).any():
            raise CorruptData("a header has no key")
        value, cursor = read_blobs(octets, cursor, ends)
        rows.append(having)
        keys.append(key)
        values.append(value)
        more = counts[having] > len(rows)
        having, cursor, ends = having[more], cursor[more], ends[more]
    return _lists(counts, _header_structs(octets, rows, keys, values))


def _header_structs(
    octets: Octets, rows: list[Integers], keys: list[Blobs], values: list[Blobs]
) -> pa.Array:
    """Return all headers, ordered by record. Within a record, their order is kept."""
    if not rows:
        return pa.array([], _HEADER)
    order = np.argsort(np.concatenate(rows), kind="stable")
    columns = []
    for blobs in (keys, values):
        positions = np.concatenate([blob.positions for blob in blobs])[order]
        lengths = np.concatenate([blob.lengths for blob in blobs])[order]
        columns.append(binary(octets, Blobs(positions, lengths)))
    return pa.StructArray.from_arrays([_text(columns[0]), columns[1]], fields=list(_HEADER))


def _text(keys: pa.Array) -> pa.Array:
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        # Brokers do not check headers, so a key may be any bytes. Decode keys as Java's clients do,
        # so that one producer's mistake does not stop every job that reads the topic.
        return pa.array([key.decode("utf-8", "replace") for key in keys.to_pylist()], pa.string())


def _lists(counts: Integers, structs: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    absent = pa.array(counts == 0)
    return pa.ListArray.from_arrays(pa.array(offsets), structs, mask=absent)


def _decode_legacy(
    view: memoryview, position: int, header: BatchHeader, within: range, with_headers: bool
) -> Iterator[Columns]:
    """Decode messages of magic 0 and 1 one by one. They occur only in old directories."""
    records = [each for each in records_of(view, position, header) if each.offset in within]
    if records:
        yield _columns_of(records, header.magic, with_headers)


def _columns_of(records: list[Record], magic: int, with_headers: bool) -> Columns:
    # Messages of magic 0 have no timestamp, so their timestamp is -1.
    types = [record.timestamp_type if magic else _NO_TIMESTAMP_TYPE for record in records]
    times = np.array([record.timestamp for record in records], np.int64)
    return Columns(
        keys=pa.array([record.key for record in records], pa.binary()),
        values=pa.array([record.value for record in records], pa.binary()),
        offsets=pa.array([record.offset for record in records], pa.int64()),
        timestamps=pa.array(times).view(_TIMESTAMP),
        timestamp_types=pa.array(types, pa.int32()),
        headers=pa.nulls(len(records), pa.list_(_HEADER)) if with_headers else None,
    )
