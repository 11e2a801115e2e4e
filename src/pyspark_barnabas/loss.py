"""Detects data loss: records that a query should have read, but that no longer exist.

A gap is not a loss. Compaction and transaction markers leave offsets without records *inside* the
log. Data is lost if an unread offset is *below* the start of the log (because of retention or
deleted records), if an offset is above the end of the log (because the brokers lost records, or the
topic was deleted and recreated), or if the partition was deleted.

Only this module decides where a query continues after a loss. The driver uses it when planning a
batch, and the tasks use it when reading. No record is read twice if the topic is known to be the
same.
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
    """The log of a partition, as last reported by the brokers."""

    start: int
    end: int
    is_same: bool | None
    """Whether the topic still has the id that it had when it was last read, or None if the id is
    unknown.
    """


class Resumed(NamedTuple):
    """The offset at which reading a partition continues, and a description of the loss (empty if
    there is none)."""

    position: int
    loss: str = ""


def resume(partition: TopicPartition, position: int, log: Log) -> Resumed:
    """Return where a query that has read everything before `position` continues.

    If the log ends below that position, it was truncated. If the topic is known to be the same, the
    query has already read the remaining records and continues at the end of the log, as with
    Spark's connector. Otherwise, the log probably belongs to another topic with the same name, and
    the query continues at the start of the log.
    """
    # A different id (KIP-516) means that this is a different topic, in which the old offsets are
    # not valid.
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
    """Return the part of a range that a task can still read, and a description of the loss (empty
    if there is none).

    No record before the start of the range is read. `resume` may return an earlier offset, but
    records before the start belong to another micro-batch, which the driver plans.
    """
    partition, start, end, _ = wanted
    first, last = resume(partition, start, log), resume(partition, end, log)
    loss = first.loss or last.loss
    if not loss:
        return wanted, ""
    # Nothing in the range is left. If there are records at these offsets, they were written after
    # the loss.
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
