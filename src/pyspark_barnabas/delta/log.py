"""The log of a Delta table: how long it is kept.

A listing of the log costs what is in it, and each commit lists it. So a table that many
micro-batches are written to needs checkpoints, and a log that is cut behind them. Every version
stays readable that is not older than the newest checkpoint before the retention's end.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark_barnabas.delta.options import DeltaOptions

_RETENTION: Final = "delta.logRetentionDuration"


def configuration(options: DeltaOptions) -> dict[str, str | None]:
    """Of a table that is made: `deltalake` keeps 30 days unless the option says something else."""
    hours = options.log_retention_hours
    return {} if hours is None else {_RETENTION: f"interval {hours} hours"}


def hook(options: DeltaOptions) -> Any:
    """What `deltalake` does behind each hundredth commit: a checkpoint, and the cut."""
    from deltalake import PostCommitHookProperties

    return PostCommitHookProperties(cleanup_expired_logs=None if options.cuts_log else False)


def cut(options: DeltaOptions, version: int | None = None) -> None:
    """Write a checkpoint, of this version or the newest, and remove what is older than the
    table's retention allows and no version behind a checkpoint needs."""
    from deltalake import DeltaTable

    storage = dict(options.storage)
    DeltaTable(options.path, version=version, storage_options=storage).create_checkpoint()
    DeltaTable(options.path, storage_options=storage).cleanup_metadata()
