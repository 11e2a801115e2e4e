"""Defines the state that `recovery.open_log` loads from a partition's directory."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.storage.durability import Durable
from barnabas.storage.epochs import LeaderEpochs
from barnabas.storage.producers import Producers
from barnabas.storage.segment import Segment


class LoadedLog(NamedTuple):
    """The state of a log at the time it is opened."""

    segments: list[Segment]
    epochs: LeaderEpochs
    producers: Producers
    producers_end: int
    """The offset right after the last batch that may have been written by a producer with an id, or
    0.
    """
    log_start_offset: int
    log_end_offset: int
    durable: Durable
    snapshot_offset: int
    topic_id: bytes | None
    gaps_end: int
