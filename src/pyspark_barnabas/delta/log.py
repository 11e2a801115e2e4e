"""Manages the retention of a Delta table's log.

The cost of listing the log grows with its length, and each commit lists it. Therefore, a table to
which many micro-batches are written needs checkpoints, and its old log entries must be removed.
Versions remain readable unless they are older than the newest checkpoint that precedes the
retention period.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark_barnabas.delta.options import DeltaOptions

_RETENTION: Final = "delta.logRetentionDuration"
_CHECKPOINT_INTERVAL: Final = "delta.checkpointInterval"
_COMMITS: Final = "10"
"""The number of commits from one checkpoint to the next: Delta's own default. The default of
`deltalake` is 100, but each commit since the checkpoint makes the next one 0.4 ms slower."""


def configuration(options: DeltaOptions) -> dict[str, str | None]:
    """Return the configuration of a new table. `deltalake` keeps its log for 30 days unless the
    option is set."""
    intervals: dict[str, str | None] = {_CHECKPOINT_INTERVAL: _COMMITS}
    hours = options.log_retention_hours
    if hours is not None:
        intervals[_RETENTION] = f"interval {hours} hours"
    return intervals


def hook(options: DeltaOptions) -> Any:
    """Return `deltalake`'s settings for cutting the log after each checkpoint."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(cleanup_expired_logs=None if options.cuts_log else False)


def cut(options: DeltaOptions, version: int | None = None) -> None:
    """Write a checkpoint of this version, or of the newest one, and remove the log entries that are
    older than the table's retention and that no version after a checkpoint needs."""
    from deltalake import DeltaTable

    storage = dict(options.storage)
    DeltaTable(options.path, version=version, storage_options=storage).create_checkpoint()
    DeltaTable(options.path, storage_options=storage).cleanup_metadata()
