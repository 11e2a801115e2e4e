"""Builds the events for retention, compaction and DeleteRecords, including their causes (IN-1).

A healthy broker with ten thousand partitions produces thousands of these events every few minutes.
They are therefore routine events (`events.ROUTINE`). The broker keeps only some of them per minute,
and tools do not show them unless asked to. The log still has a line for each event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.counted import counted
from barnabas.events import Event

if TYPE_CHECKING:
    from barnabas.broker.partitions.replica import Replica
    from barnabas.storage.cleaner import Cleanable
    from barnabas.storage.compaction.job import Finished
    from barnabas.storage.log import Log
    from barnabas.storage.retention import Removal


def retention_event(removal: Removal, log: Log) -> Event:
    """Return the event for segments that retention has removed."""
    config, name = log.config, log.topic_partition
    limits = (
        (removal.by_start, "below the log start offset, which DeleteRecords or a leader raised"),
        (removal.by_size, f"by retention.bytes={config.retention_bytes}"),
        (removal.by_age, f"by retention.ms={config.retention_ms}"),
    )
    causes = [f"{counted(count, 'segment')} {limit}" for count, limit in limits if count]
    cause = ", ".join(causes)
    text = (
        f"[Log partition={name}, dir={log.directory.parent}] Deleting "
        f"{counted(removal.segments, 'segment')} of {counted(removal.size_bytes, 'byte')}, "
        f"incremented log start offset to {log.log_start_offset} due to segment deletion: {cause}"
    )
    return Event("retention", text, cause, name.topic, name.partition, is_harmless=True)


def deletion_event(replica: Replica, cause: str) -> Event:
    """Return the event for a log start that a client has raised with DeleteRecords."""
    log, name = replica.log, replica.topic_partition
    text = (
        f"[Log partition={name}, dir={log.directory.parent}] Incremented log start offset to "
        f"{log.log_start_offset} due to client delete records request: {cause}"
    )
    return Event("retention", text, cause, name.topic, name.partition)


def compaction_event(cleanable: Cleanable, end: Finished, took_ms: int) -> Event:
    """Return the event for a log that was compacted."""
    log = cleanable.log
    config, name = log.config, log.topic_partition
    if cleanable.is_overdue:
        cause = f"records are older than max.compaction.lag.ms={config.max_compaction_lag_ms}"
    else:
        cause = (
            f"{cleanable.dirty_ratio:.0%} of its bytes were not compacted yet "
            f"(min.cleanable.dirty.ratio is {config.min_cleanable_dirty_ratio})"
        )
    text = (
        f"{name}: compacted from offset {cleanable.first_dirty_offset} up to offset "
        f"{end.first_dirty_offset} in {took_ms} ms, keeping {end.records_kept:,} of "
        f"{counted(end.records_read, 'record')} and {end.bytes_kept:,} of "
        f"{counted(end.bytes_read, 'byte')}: {cause}"
    )
    return Event("compaction", text, cause, name.topic, name.partition, is_harmless=True)
