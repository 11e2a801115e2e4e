"""One batch: from the state before it to the state after it.

    positions before ─▶ one pass ─▶ commits of all tables ─▶ dead letters ─▶ control table

Killed between any two of these, the batch is taken again and ends the same: it begins with the
state that the control table names, and what is there already is recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

import pyarrow as pa  # type: ignore[import-untyped]

from barnabas.pipeline.layout import Layout
from barnabas.pipeline.one_pass import OnePass, Work, outcome
from barnabas.pipeline.tables import Control, Tables

Tasks = Callable[[OnePass], Iterable[tuple[str, bytes]]]
"""Runs the pass over the records of a batch, in as many tasks as it likes."""


class Send(Protocol):
    """Sends a batch's dead letters once: see `DeadLetterTopic.send`."""

    def __call__(
        self, letters: pa.Table, batch: int, *, since: Mapping[int, int]
    ) -> dict[int, int]: ...


class Definition(Protocol):
    """What makes a pipeline this one and no other."""

    @property
    def name(self) -> str: ...

    @property
    def layout(self) -> Layout: ...

    def work(self, tables: Tables, before: Control | None) -> Work:
        """What is made of the batch that comes after this state."""
        ...


class Query(NamedTuple):
    """A streaming query that fills tables; `id` is what its checkpoint keeps."""

    id: str
    definition: Definition
    tables: Tables
    send: Send

    def take(self, batch: int, tasks: Tasks) -> None:
        """Without effect for a batch that is there.

        Raises `ConfigError` and `NotExactlyOnce` where the tables cannot be those of this query.
        """
        tables, layout = self.tables, self.definition.layout
        before = tables.control()
        if not tables.is_next(batch, self.id, before):
            return
        work, paths = self.definition.work(tables, before), tables.growing_paths()
        one_pass = OnePass(work, layout.growing, layout.merged, paths, tables.positions(before))
        found = work.finished(outcome(layout, tasks(one_pass)), paths)
        tables.commit(batch, self.id, found)
        letters_end = before.dead_letters_end if before else {}
        if found.letters.num_rows:
            letters_end = self.send(found.letters, batch, since=letters_end)
        times = (layout.newest_s(found.parts), before.newest_s if before else None)
        newest_s = max((each for each in times if each is not None), default=None)
        tables.conclude(batch, self.id, newest_s, letters_end)
