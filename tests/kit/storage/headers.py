"""Batch headers of an idempotent producer."""

from __future__ import annotations

from barnabas.records.batch import BatchHeader


def header(sequence: int, count: int = 1, *, epoch: int = 0, attributes: int = 0) -> BatchHeader:
    return BatchHeader(0, 0, 0, 2, 0, attributes, count - 1, 5, 5, 4000, epoch, sequence, count)
