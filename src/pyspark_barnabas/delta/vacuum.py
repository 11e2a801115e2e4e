"""Removes the files of a table that are not needed by any version within the retention period."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_barnabas.delta.demands import refuse_features

if TYPE_CHECKING:
    from deltalake import DeltaTable


def vacuum(
    table: DeltaTable, retain_hours: int | None = None, *, dry_run: bool = False
) -> list[str]:
    """Remove the files and return them; with `dry_run`, only return them. `retain_hours`: the
    retention period; if None, the table's property delta.deletedFileRetentionDuration is used,
    which defaults to a week.

    Raises `ConfigError` if `deltalake` might mistake some of the table's files for unneeded ones.
    """
    refuse_features(table)
    return table.vacuum(retain_hours, dry_run, enforce_retention_duration=False, full=True)
