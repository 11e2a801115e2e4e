"""Detects data loss: records that a query should have read no longer exist.

A gap is not a loss. Compaction and transaction markers leave offsets without records *inside* the
log. A loss is an unread offset *below* the log's start (retention, deleted records), an offset
above its end (records lost by the brokers, a topic deleted and recreated), or an offset in a
deleted partition.

Only this module decides where a query continues after a loss, both for the driver, which plans, and
for the tasks, which read. Nothing is read twice if the topic is known to be the same.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from barnabas.errors import BarnabasError
from barnabas.types import TopicPartition
from pyspark_barnabas.offsets import OffsetRange

_log = logging.getLogger(__name__)


class DataLoss(BarnabasError):
    """Records that the query should have read no longer exist."""


class Log(NamedTuple):
    """A partition's log, as last reported by the brokers."""

    start: int
    end: int
    is_same: bool | None
    """Whether the topic id is that of the topic read before; None if the id is unknown."""


class Resumed(NamedTuple):
    """The offset at which reading a partition continues, and a description of any loss (otherwise
    empty)."""

    position: int
    loss: str = ""


def resume(partition: TopicPartition, position: int, log: Log) -> Resumed:
    """Return where a query that has read everything before `position` continues.

    A log that ends below that position was truncated. If the topic is known to be the same, the
    query has read what is left and continues at the end, as with Spark's connector. Otherwise, the
    log more likely belongs to another topic with the same name, and the query continues at its
    start.
    """
    # With another id (KIP-516), this is another topic, where old offsets mean nothing.
    if log.is_same is False:
        text = f"{partition.topic}: deleted and created again, with records still to read"
        return Resumed(log.start, text)
    if position < log.start:
        text = f"offsets {position} to {log.start} of {partition} were deleted from its log"
        return Resumed(log.start, text)
    if position <= log.end:
        return Resumed(position)
    cut = f"{partition} had records up to offset {position}, but its log now ends at {log.end}"
    if log.is_same:
        reason = "it is the same topic, and its brokers lost records (an unclean leader election,"
        return Resumed(log.end, f"{cut}: {reason} or a disk restored from a copy)")
    reason = "the topic was deleted and created again, or its brokers lost records"
    return Resumed(log.start, f"{cut}: {reason}")


def remainder(wanted: OffsetRange, log: Log) -> tuple[OffsetRange, str]:
    """Return the part of a range that a task can still read, and a description of any loss
    (otherwise empty).

    Nothing before the range's start is read: `resume` may go back, but rows from before the start
    would belong to another micro-batch, which the driver plans.
    """
    partition, start, end, _ = wanted
    first, last = resume(partition, start, log), resume(partition, end, log)
    loss = first.loss or last.loss
    if not loss:
        return wanted, ""
    # None of the range is left: any records at these offsets were written after the loss.
    if log.is_same is False or start > log.end:
        return wanted._replace(start=end), loss
    return wanted._replace(start=min(first.position, end), end=min(end, log.end)), loss


def report_loss(text: str, *, fail_on_data_loss: bool) -> None:
    """Raise `DataLoss`, or log a warning if the user chose to continue without the records."""
    if fail_on_data_loss:
        raise DataLoss(
            f"{text}. To continue without these records, set the option failOnDataLoss to false;"
            " to avoid it, keep records for longer (retention.ms, retention.bytes) or run the"
            " query more often"
        )
    _log.warning("%s; continuing without these records (failOnDataLoss=false)", text)
