"""Manages the retention of a Delta table's log.

Each commit has to list the log, which takes longer as the log grows. A table that receives many
micro-batches therefore needs checkpoints, and old log entries must be removed. Versions remain
readable unless they are older than the newest checkpoint that precedes the retention period.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark_barnabas.delta.options import DeltaOptions

_RETENTION: Final = "delta.logRetentionDuration"
_CHECKPOINT_INTERVAL: Final = "delta.checkpointInterval"
_COMMITS: Final = "10"
"""The number of commits between checkpoints, which is Delta's default. `deltalake` defaults to 100,
but each commit since the last checkpoint makes the next commit 0.4 ms slower."""


def configuration(options: DeltaOptions) -> dict[str, str | None]:
    """Return the configuration of a new table. `deltalake` keeps the log for 30 days unless the
    option is set."""
    intervals: dict[str, str | None] = {_CHECKPOINT_INTERVAL: _COMMITS}
    hours = options.log_retention_hours
    if hours is not None:
        intervals[_RETENTION] = f"interval {hours} hours"
    return intervals


def hook(options: DeltaOptions) -> Any:
    """Return `deltalake`'s settings for truncating the log after each checkpoint."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(cleanup_expired_logs=None if options.cuts_log else False)


def cut(options: DeltaOptions, version: int | None = None) -> None:
    """Write a checkpoint of this version, or by default of the newest version, and remove old log
    entries. An entry is removed if it is older than the table's retention and no version after a
    checkpoint needs it."""
    from deltalake import DeltaTable

    storage = dict(options.storage)
    DeltaTable(options.path, version=version, storage_options=storage).create_checkpoint()
    DeltaTable(options.path, storage_options=storage).cleanup_metadata()
