"""Tracks a query's progress in its target topic: the last committed micro-batch.

The progress is stored as an offset that the query's group commits in the same transaction as the
rows, so either both are committed or neither is. The `offset` is the number of the next
micro-batch, and the `metadata` contains the query. Pure.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from barnabas.counted import counted
from barnabas.errors import BarnabasError, CorruptData


class NotExactlyOnce(BarnabasError):
    """Continuing would lose or duplicate rows."""


class Token(NamedTuple):
    """Identifies the last committed micro-batch."""

    query: str
    batch: int
    rows: int

    @property
    def metadata(self) -> str:
        return json.dumps({"query": self.query, "rows": self.rows})

    @classmethod
    def of(cls, offset: int, metadata: str) -> Token:
        """Return the token in a committed offset. Raises `CorruptData` if the offset was not
        committed by a query.
        """
        try:
            fields: dict[str, Any] = json.loads(metadata)
            return cls(str(fields["query"]), offset - 1, int(fields["rows"]))
        except (ValueError, TypeError, KeyError):
            raise CorruptData(f"offset {offset}, {metadata!r}: not a query's token") from None


def is_committed(
    found: Token | None, wanted: Token, transactional_id: str, begins: int | None = None
) -> bool:
    """Return whether a micro-batch has been committed, according to the progress of its query.

    `begins`: the user has stated that all earlier micro-batches are in the topic. Raises
    `NotExactlyOnce` if skipping the micro-batch might lose rows and writing it might duplicate
    rows.
    """
    if found is not None and found.query != wanted.query:
        raise NotExactlyOnce(
            f"transactional.id {transactional_id!r} belongs to query {found.query}, whose last "
            f"batch is {found.batch}; this is query {wanted.query}. A query with a new checkpoint "
            "needs another kafka.transactional.id"
        )
    if begins is not None and wanted.batch < begins:
        return True
    if found is None:
        if wanted.batch in (0, begins):
            return False
        raise NotExactlyOnce(
            f"transactional.id {transactional_id!r} has no progress, but this is batch "
            f"{wanted.batch}: the query ran without exactlyOnce before, or its staging topic was "
            "deleted, or it was stopped for longer than offsets.retention.minutes and its "
            "progress has expired. If all batches before it are in the topic, set "
            f"exactlyOnceBegins={wanted.batch}; if batch {wanted.batch} is there as well, set "
            f"exactlyOnceBegins={wanted.batch + 1}"
        )
    if wanted.batch == found.batch + 1:
        return False
    if wanted.batch > found.batch:
        if wanted.batch == begins:
            return False
        raise NotExactlyOnce(
            f"this is batch {wanted.batch}, but batch {found.batch} is the last one committed "
            f"with transactional.id {transactional_id!r}: the topic is older than the checkpoint "
            "(another cluster's, or restored), or the query ran without exactlyOnce in between. If "
            f"all batches before it are in the topic, set exactlyOnceBegins={wanted.batch};"
            f" if batch {wanted.batch} is there as well, set exactlyOnceBegins={wanted.batch + 1}"
        )
    if wanted.batch < found.batch:
        raise NotExactlyOnce(
            f"batch {wanted.batch} runs again, but batch {found.batch} is committed already: the "
            "checkpoint is older than the topic (restored, or copied and continued elsewhere)"
        )
    if wanted.rows != found.rows:
        raise NotExactlyOnce(
            f"batch {wanted.batch} was committed with {counted(found.rows, 'row')} and "
            f"now has {wanted.rows}: the query does not return the same rows for the same "
            "offsets. To continue with the committed rows, set "
            f"exactlyOnceBegins={wanted.batch + 1}"
        )
    return True
