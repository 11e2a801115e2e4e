"""Walks from one record's length to the next, to find only where records begin.

This is the cheapest loop over records in plain Python. It is for readers that decode columns
(`fields`), or whose records another pass has checked (compaction).
"""

from __future__ import annotations

from barnabas.records.varint import finish_varint


def walk_starts(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """Return the starts of `count` records from `at` on, and the position after the last of them.

    The caller must compare that position with the end of the records. Raises IndexError beyond the
    end of `data`, or CorruptData if a varint is too long.
    """
    starts: list[int] = []
    append = starts.append
    for _ in range(count):
        append(at)
        # Nearly every length is one or two octets; a call would cost more than everything else. The
        # sign bit is dropped, so that no length leads backwards.
        raw = data[at]
        if raw < 0x80:
            at += 1 + (raw >> 1)
        elif (high := data[at + 1]) < 0x80:
            at += 2 + ((raw & 0x7F | high << 7) >> 1)
        else:
            raw, at = finish_varint(data, at + 1, raw)
            at += raw >> 1
    return starts, at
