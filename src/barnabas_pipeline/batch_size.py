"""Determines how many records a micro-batch can have before any of them is read."""

from __future__ import annotations

import json
from pathlib import Path

from barnabas.errors import BarnabasError
from pyspark_barnabas.offsets import StreamOffset, ranges_between


def most_records(checkpoint: Path, batch: int) -> int | None:
    """Return the largest possible number of records in a batch that Spark has begun, or None if the
    checkpoint does not show it.

    The result is a number of offsets, and some offsets have no record.
    """
    try:
        # The entry of batch 0 also contains the start of each partition.
        before = _offset(checkpoint, batch - 1) if batch else StreamOffset({}, {})
        ranges = ranges_between(before, _offset(checkpoint, batch))
    # Spark removes old entries, and its format may change. The number only affects how the batch is
    # processed.
    except (OSError, ValueError, IndexError, BarnabasError):
        return None
    return sum(each.end - each.start for each in ranges)


def _offset(checkpoint: Path, batch: int) -> StreamOffset:
    """Read an entry of the log in which Spark records the end of a batch before the batch
    begins."""
    entry = (checkpoint / "offsets" / str(batch)).read_text("utf-8")
    # The version of the format and Spark's metadata precede the offset of our only source.
    return StreamOffset.from_json(json.loads(entry.splitlines()[-1]))
