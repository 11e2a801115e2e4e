"""A query's progress in its target topic: the last micro-batch that was committed.

It is an offset of the query's group, committed in the transaction of the rows, so both are there or
neither: `offset` is the number of the next micro-batch, `metadata` names the query. Pure.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from barnabas.errors import BarnabasError, CorruptData


class NotExactlyOnce(BarnabasError):
    """To go on would lose rows, or double them."""


class Token(NamedTuple):
    """The last micro-batch that was committed."""

    query: str
    batch: int
    rows: int

    @property
    def metadata(self) -> str:
        return json.dumps({"query": self.query, "rows": self.rows})

    @classmethod
    def of(cls, offset: int, metadata: str) -> Token:
        """Raises `CorruptData` for what no query has committed."""
        try:
            fields: dict[str, Any] = json.loads(metadata)
            return cls(str(fields["query"]), offset - 1, int(fields["rows"]))
        except (ValueError, TypeError, KeyError):
            raise CorruptData(f"offset {offset}, {metadata!r}: not a query's token") from None


def is_committed(
    found: Token | None, wanted: Token, transactional_id: str, begins: int | None = None
) -> bool:
    """Whether a micro-batch was committed before, by what was found of its query.

    `begins`: the user says that all micro-batches before this one are in the topic. Raises
    `NotExactlyOnce` where to skip it may lose rows and to write it may double some.
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
            f"nothing is known of transactional.id {transactional_id!r}, but this is batch "
            f"{wanted.batch}: the query ran without exactlyOnce before, or its staging topic was "
            "deleted, or it was stopped for longer than offsets.retention.minutes and what it "
            "committed is forgotten. If all batches before it are in the topic, say so with "
            f"exactlyOnceBegins={wanted.batch}; if batch {wanted.batch} is there, too, with "
            f"exactlyOnceBegins={wanted.batch + 1}"
        )
    if wanted.batch == found.batch + 1:
        return False
    if wanted.batch > found.batch:
        if wanted.batch == begins:
            return False
        raise NotExactlyOnce(
            f"this is batch {wanted.batch}, but batch {found.batch} is the last that is committed "
            f"with transactional.id {transactional_id!r}: the topic is older than the checkpoint "
            "(another cluster's, or restored), or the query ran without exactlyOnce in between. If "
            f"all batches before it are in the topic, say so with exactlyOnceBegins={wanted.batch};"
            f" if batch {wanted.batch} is there, too, with exactlyOnceBegins={wanted.batch + 1}"
        )
    if wanted.batch < found.batch:
        raise NotExactlyOnce(
            f"batch {wanted.batch} runs again, but batch {found.batch} is committed already: the "
            "checkpoint is older than the topic (restored, or a copy that went on elsewhere)"
        )
    if wanted.rows != found.rows:
        raise NotExactlyOnce(
            f"batch {wanted.batch} is committed with {found.rows} rows and now has {wanted.rows}: "
            "the query does not give the same rows for the same offsets. To go on with what is "
            f"committed, say exactlyOnceBegins={wanted.batch + 1}"
        )
    return True
