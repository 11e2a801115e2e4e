"""Tracks a query's progress in a table, using Delta's application transactions. Pure.

Each commit by a query contains two application transactions. The first one identifies the
application, and its version is the number of the micro-batch. The name of the second one also
contains the query, so that another query that uses the same application is detected.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.counted import counted
from pyspark_barnabas.token import NotExactlyOnce


class Progress(NamedTuple):
    """The versions that a table records for an application and for one of the application's
    queries, or None if none is recorded."""

    application: int | None = None
    query: int | None = None
    rows: int | None = None  # of its last commit; None if unknown
    is_restored: bool = False  # to a version before its last commit, which is still in the log


def query_application(app_id: str, query: str) -> str:
    """Return the name of the application transaction that also identifies the query."""
    return f"{app_id}#{query}"


class MicroBatch(NamedTuple):
    """A micro-batch to commit. `begins`: the user has stated that the table contains all earlier
    micro-batches.
    """

    app_id: str
    query: str
    batch: int
    rows: int
    begins: int | None = None


def is_committed(found: Progress, wanted: MicroBatch) -> bool:
    """Return whether a micro-batch is in the table.

    Raises `NotExactlyOnce` if skipping the micro-batch might lose rows and writing it might
    duplicate rows.
    """
    app_id, query, batch, rows, begins = wanted
    if found.application is not None and found.application != found.query:
        raise NotExactlyOnce(
            f"txnAppId {app_id!r} has version {found.application} in this table, and query "
            f"{query} has {'none' if found.query is None else found.query}: another query writes "
            "or has written with that id. A query with a new checkpoint needs another txnAppId"
        )
    if begins is not None and batch < begins:
        return True
    if found.is_restored:
        return _of_restored(app_id, batch, begins)
    expected = 0 if found.application is None else found.application + 1
    if batch == found.application:
        # The number is None if the log no longer contains that commit, or if another writer made
        # it.
        if found.rows not in (None, rows):
            raise NotExactlyOnce(
                f"batch {batch} was committed with {counted(found.rows or 0, 'row')} and now has "
                f"{rows}: the query does not return the same rows for the same offsets, or runs "
                f"twice, from a copied checkpoint. To continue with the committed rows, set "
                f"txnBegins={batch + 1}"
            )
        return True
    if batch < expected:
        raise NotExactlyOnce(
            f"batch {batch} runs again, but batch {found.application} is in the table already: the "
            "checkpoint is older than the table (restored, or copied and continued elsewhere)"
        )
    if batch in (expected, begins):
        return False
    raise NotExactlyOnce(
        f"this is batch {batch}, and the table has "
        f"{'none' if found.application is None else f'{found.application} as the last'} of this "
        "query: the table is older than the checkpoint (restored, or another one), or the query "
        f"wrote elsewhere before. If nothing is missing, set txnBegins={batch}"
    )


def is_committed_job(found: Progress, app_id: str, version: int, begins: int | None = None) -> bool:
    """Return whether a batch job with a version is in the table. As in Delta, a job is skipped
    unless its version is newer."""
    if found.application is None or version > found.application:
        return False
    return not found.is_restored or _of_restored(app_id, version, begins)


def _of_restored(app_id: str, batch: int, begins: int | None) -> bool:
    if begins is not None and batch <= begins:
        return batch < begins
    raise NotExactlyOnce(
        f"the table was restored to an older version since txnAppId {app_id!r} wrote to it. If all "
        f"batches before batch {batch} are there, but it is not, set txnBegins={batch}; if it is "
        f"there as well, set txnBegins={batch + 1}"
    )
