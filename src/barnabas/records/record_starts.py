"""Finds where records begin by walking from the length of each record to the next.

No other loop over records in plain Python is as cheap. It is used by readers that decode columns
(`fields`), and for records that another pass has already checked (compaction).
"""

from __future__ import annotations

from barnabas.records.varint import finish_varint


def walk_starts(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """Return the starts of `count` records from `at` on, and the position after the last record.

    The caller has to compare this position with the end of the records. Raises IndexError if a
    record extends beyond the end of `data`, or CorruptData if a varint is too long.
    """
    starts: list[int] = []
    append = starts.append
    for _ in range(count):
        append(at)
        # Nearly every length has one or two octets, and a function call would cost more than
        # everything else. The sign bit is dropped, so that a length can never lead backwards.
        raw = data[at]
        if raw < 0x80:
            at += 1 + (raw >> 1)
        elif (high := data[at + 1]) < 0x80:
            at += 2 + ((raw & 0x7F | high << 7) >> 1)
        else:
            raw, at = finish_varint(data, at + 1, raw)
            at += raw >> 1
    return starts, at
