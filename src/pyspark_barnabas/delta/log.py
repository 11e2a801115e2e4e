"""The retention of a Delta table's log.

The cost of listing the log grows with it, and each commit lists it. So a table that many
micro-batches are written to needs checkpoints, and older log entries removed. Every version stays
readable that is not older than the newest checkpoint before the retention's end.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark_barnabas.delta.options import DeltaOptions

_RETENTION: Final = "delta.logRetentionDuration"


def configuration(options: DeltaOptions) -> dict[str, str | None]:
    """The configuration of a new table: `deltalake` keeps 30 days unless the option is set."""
    hours = options.log_retention_hours
    return {} if hours is None else {_RETENTION: f"interval {hours} hours"}


def hook(options: DeltaOptions) -> Any:
    """The hook for `deltalake`: after each hundredth commit, a checkpoint and the cut."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(cleanup_expired_logs=None if options.cuts_log else False)


def cut(options: DeltaOptions, version: int | None = None) -> None:
    """Write a checkpoint, of this version or the newest, and remove log entries beyond the table's
    retention that no version after a checkpoint needs."""
    from deltalake import DeltaTable

    storage = dict(options.storage)
    DeltaTable(options.path, version=version, storage_options=storage).create_checkpoint()
    DeltaTable(options.path, storage_options=storage).cleanup_metadata()
