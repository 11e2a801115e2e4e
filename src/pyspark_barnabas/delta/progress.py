"""What of a query a table holds already, by Delta's application transactions. Pure.

A commit of a query carries two: its application's, with the number of the micro-batch as version,
and one that also names the query, so that another query under the same application is noticed.
"""

from __future__ import annotations

from typing import NamedTuple

from pyspark_barnabas.token import NotExactlyOnce


class Progress(NamedTuple):
    """What a table says of an application: versions of it and of a query of it; None: none."""

    application: int | None = None
    query: int | None = None
    rows: int | None = None  # of its last commit; None: not known
    is_restored: bool = False  # to a version from before its last commit, which it still names


def query_application(app_id: str, query: str) -> str:
    """The name of the transaction that names the query, too."""
    return f"{app_id}#{query}"


class MicroBatch(NamedTuple):
    """What is to be committed. `begins`: the user says that what comes before is there."""

    app_id: str
    query: str
    batch: int
    rows: int
    begins: int | None = None


def is_committed(found: Progress, wanted: MicroBatch) -> bool:
    """Whether a micro-batch is in the table.

    Raises `NotExactlyOnce` where to skip it may lose rows and to write it may double some.
    """
    app_id, query, batch, rows, begins = wanted
    if found.application is not None and found.application != found.query:
        raise NotExactlyOnce(
            f"txnAppId {app_id!r} has version {found.application} in this table, and query {query} "
            f"has {'none' if found.query is None else found.query}: another query writes, or wrote,"
            " under that id. A query with a new checkpoint needs another txnAppId"
        )
    if begins is not None and batch < begins:
        return True
    if found.is_restored:
        return _of_restored(app_id, batch, begins)
    expected = 0 if found.application is None else found.application + 1
    if batch == found.application:
        if found.rows not in (None, rows):
            raise NotExactlyOnce(
                f"batch {batch} is committed with {found.rows} rows and now has {rows}: the query "
                "does not give the same rows for the same offsets, or runs twice, from a copied "
                f"checkpoint. To go on with what is committed, say txnBegins={batch + 1}"
            )
        return True
    if batch < expected:
        raise NotExactlyOnce(
            f"batch {batch} runs again, but batch {found.application} is in the table already: the "
            "checkpoint is older than the table (restored, or a copy that went on elsewhere)"
        )
    if batch in (expected, begins):
        return False
    raise NotExactlyOnce(
        f"this is batch {batch}, and the table has "
        f"{'none' if found.application is None else f'{found.application} as the last'} of this "
        "query: the table is older than the checkpoint (restored, or another one), or the query "
        f"wrote elsewhere before. If nothing is missing, say so with txnBegins={batch}"
    )


def is_committed_job(found: Progress, app_id: str, version: int, begins: int | None = None) -> bool:
    """The same of a batch job with a version: passed over unless it is newer, as Delta does."""
    if found.application is None or version > found.application:
        return False
    return not found.is_restored or _of_restored(app_id, version, begins)


def _of_restored(app_id: str, batch: int, begins: int | None) -> bool:
    if begins is not None and batch <= begins:
        return batch < begins
    raise NotExactlyOnce(
        f"the table was restored to an older version since txnAppId {app_id!r} wrote to it. If all "
        f"before batch {batch} is there, and it is not, say so with txnBegins={batch}; if it is "
        f"there, too, with txnBegins={batch + 1}"
    )
