"""Defines the state of a log that `recovery.open_log` loads from a partition's directory."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.durability import Durable
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.producers import Producers
from barnabas.storage.segment import Segment


class LoadedLog(NamedTuple):
    """The state of a log when it is opened."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: Producers
    producers_end: int
    """The offset after the last batch that may belong to a producer, or 0."""
    log_start_offset: int
    log_end_offset: int
    durable: Durable
    snapshot_offset: int
    topic_id: bytes | None
    gaps_end: int
