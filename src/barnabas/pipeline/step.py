"""One batch: from the state before it to the state after it.

    positions before ─▶ one pass ─▶ commits of all tables ─▶ dead letters ─▶ control table

Killed between any two of these, the batch is taken again and ends the same: it begins with the
state that the control table names, and what is there already is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas.pipeline.one_pass import OnePass, outcome
from barnabas.pipeline.tables import Tables

Tasks = Callable[[OnePass], Iterable[tuple[str, bytes]]]
"""Runs the pass over the records of a batch, in as many tasks as it likes."""


class Send(Protocol):
    """Sends a batch's dead letters once: see `DeadLetterTopic.send`."""

    def __call__(
        self, letters: pa.Table, batch: int, *, may_be_there: bool, since: Mapping[int, int]
    ) -> dict[int, int]: ...


def take(tables: Tables, batch: int, query: str, tasks: Tasks, send: Send) -> None:
    """Without effect for a batch that is there.

    Raises `ConfigError` and `NotExactlyOnce` where the tables cannot be those of this query.
    """
    before = tables.control()
    if not tables.is_next(batch, query, before):
        return
    found = outcome(tasks(OnePass(tables.growing_paths(), tables.positions(before))))
    new = tables.commit(batch, query, found)
    letters_end = before.dead_letters_end if before else {}
    if found.letters.num_rows:
        # Dead letters are sent when the table has them: if it had not, nobody has sent any.
        is_replay = "dead_letters" not in new
        letters_end = send(found.letters, batch, may_be_there=is_replay, since=letters_end)
    times = (found.newest_s, before.newest_s if before else None)
    newest_s = max((each for each in times if each is not None), default=None)
    tables.conclude(batch, query, newest_s, letters_end)
