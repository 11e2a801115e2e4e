"""Values without keys and headers, such as the lines of a file, as whole record batches. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from barnabas.client.producer.open_records import OpenRecords
from barnabas.records.batch import seal
from barnabas.records.compression import NONE

MOST_RECORDS = 4_096  # of a batch


def encode_values(values: Sequence[bytes], timestamp_ms: int, codec: int = NONE) -> bytes:
    """The batch of these values, all with this timestamp."""
    return seal(*OpenRecords.of_values(values, timestamp_ms, codec).build())


def batches_of(values: Sequence[bytes], most_bytes: int) -> Iterator[Sequence[bytes]]:
    """The values in stretches of at most that many bytes, but one value at least."""
    ends = list(accumulate(map(len, values)))
    start = before = 0
    while start < len(values):
        end = min(bisect_right(ends, before + most_bytes), start + MOST_RECORDS)
        end = max(end, start + 1)
        yield values[start:end]
        start, before = end, ends[end - 1]
