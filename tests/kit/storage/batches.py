"""Batches of any records, honest and lying, and messages of the old formats."""

from __future__ import annotations

import zlib
from struct import pack

from hypothesis import strategies as st

from barnabas.records.batch import HEADER_BYTES, read_header, seal
from barnabas.records.record import BatchBuilder

Row = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


Rows = list[Row]


octets = st.none() | st.binary(max_size=80)


headers = st.lists(st.tuples(st.text(max_size=8), octets), max_size=3).map(tuple)


timestamps = st.integers(0, 2**42)


rows = st.lists(st.tuples(timestamps, octets, octets, headers), min_size=1, max_size=40)


codecs = st.integers(0, 4)


def build(codec: int, rows: Rows) -> BatchBuilder:
    builder = BatchBuilder(codec)
    for timestamp, key, value, pairs in rows:
        builder.append(timestamp, key, value, pairs)
    return builder


def lying(batch: bytes | bytearray, **fields: int) -> memoryview:
    """The batch under a header that says something else, with a checksum that is right."""
    header = read_header(batch)._replace(**fields)
    return memoryview(bytearray(seal(header, memoryview(batch)[HEADER_BYTES:])))


def of_count(batch: bytes | bytearray, count: int) -> memoryview:
    return lying(batch, record_count=count, last_offset_delta=count - 1)


def message(
    offset: int, value: bytes, *, magic: int = 1, timestamp: int = 7, attributes: int = 0
) -> bytes:
    """One message without a key."""
    time = pack(">q", timestamp) if magic else b""
    body = pack(">bb", magic, attributes) + time + pack(">ii", -1, len(value)) + value
    return pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body
