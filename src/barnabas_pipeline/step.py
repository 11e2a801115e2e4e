"""Processes one batch, from the state before it to the state after it.

    positions before ─▶ one pass ─▶ commits of all tables ─▶ dead letters ─▶ control table

If the process is killed between any two of these steps, the batch is repeated with the same result:
it starts from the state in the control table, and commits already made are recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas_pipeline.one_pass import OnePass, outcome, with_rows_written
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tables import Tables
from barnabas_pipeline.work import Definition

Tasks = Callable[[OnePass], Iterable[tuple[str, bytes]]]
"""Runs the pass over the records of a batch, split into any number of tasks."""


class Send(Protocol):
    """Sends the dead letters of a batch exactly once (see `DeadLetterTopic.send`)."""

    def __call__(
        self, letters: pa.Table, batch: int, *, since: Mapping[int, int]
    ) -> dict[int, int]: ...


class Query(NamedTuple):
    """A streaming query that fills tables; `id` is its checkpoint's id."""

    id: str
    definition: Definition
    tables: Tables
    send: Send

    def take(self, batch: int, tasks: Tasks) -> None:
        """Process a batch, unless it has already been committed.

        Raises `ConfigError` or `NotExactlyOnce` if the tables cannot belong to this query.
        """
        tables, layout = self.tables, self.definition.layout
        before = tables.control()
        # After a crash, Spark repeats a finished batch if it is not marked as done.
        if not tables.is_next(batch, self.id, before):
            return
        work = self.definition.work(Snapshot.at(tables, before) if before else None)
        paths = tables.growing_paths()
        one_pass = OnePass(work, layout.growing, layout.merged, paths, tables.positions(before))
        found = with_rows_written(
            work.finish(outcome(layout, tasks(one_pass))), layout.growing, paths
        )
        tables.commit(batch, self.id, found)
        letters_end = before.dead_letters_end if before else {}
        if found.letters.num_rows:
            letters_end = self.send(found.letters, batch, since=letters_end)
        # The newest time must not decrease, even if a batch contains only older lines.
        times = (layout.newest_s(found.parts), before.newest_s if before else None)
        newest_s = max((each for each in times if each is not None), default=None)
        tables.conclude(batch, self.id, newest_s, letters_end)
