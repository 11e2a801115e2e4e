"""Reads the tables of a pipeline into a model, and the rows of each later batch into another one.

The kind of a pipeline is recorded in its tables, so that no option has to name it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Final, NamedTuple

from pyarrow import ArrowException  # type: ignore[import-untyped]

from barnabas.errors import ConfigError
from barnabas_pipeline.behaviour.definition import BEHAVIOUR
from barnabas_pipeline.layout import Layout
from barnabas_pipeline.logs.definition import LOGS
from barnabas_pipeline.pages.model import Model
from barnabas_pipeline.pages.shapes import Kind
from barnabas_pipeline.snapshot import Snapshot
from barnabas_pipeline.tracking.definition import TRACKING
from barnabas_pipeline.tracking.funnels import Funnel
from barnabas_pipeline.tracking.goals import Goal
from barnabas_track.countries import Countries

_WAIT_S: Final = 0.3
"""How long the first request after a batch waits for its rows."""
_TICK_NS: Final = 2_000_000_000


class Options(NamedTuple):
    """The options of the models."""

    funnels: Sequence[Funnel] = ()
    goals: Sequence[Goal] = ()
    show_addresses: bool = False
    countries: Countries | None = None
    """The countries of the addresses in access logs."""


class Source:
    """The tables of a directory. Its methods are called in a worker thread."""

    def __init__(self, out: Path, options: Options) -> None:
        """Raises ConfigError if there are no tables in `out`, or if they are damaged."""
        self._tables = out / "tables"
        self._options = options
        try:
            self.kind, self._layout = _kind(self._tables)
        except ArrowException as error:
            raise ConfigError(f"the tables in {out} cannot be read: {error}") from error
        self._lock = threading.Lock()
        self._seen: tuple[int, ...] | None = None
        self._model: Model | None = None
        self._reading: Future[Model] | None = None
        self._waited_for: Future[Model] | None = None

    @property
    def is_reading(self) -> bool:
        """True while a batch is being read."""
        return self._reading is not None and not self._reading.done()

    def model(self) -> Model:
        """Return a model of the newest batch.

        Only the first call waits until the tables are read. After a later batch, the previous model
        is returned while the rows of that batch are read in another thread.
        """
        with self._lock:
            before = self._model
            if before is None:
                self._seen = _changed_ns(self._tables)
                self._model = self._read(Snapshot(self._tables, self._layout), None)
            else:
                self._model = self._later(before)
            return self._model

    def _later(self, before: Model) -> Model:
        if self._reading is None:
            seen = _changed_ns(self._tables)
            if seen is not None and seen == self._seen:
                return before
            snapshot = Snapshot(self._tables, self._layout)
            self._seen = seen
            if before.site["batch"] == _batch(snapshot):
                return before
            self._reading = self._begin(snapshot, before)
        reading = self._reading
        # Few rows are read while the browser hardly notices.
        wait([reading], _WAIT_S if reading is not self._waited_for else 0)
        self._waited_for = reading
        if not reading.done():
            return before
        self._reading = None
        if reading.exception() is not None:
            self._seen = None  # the next request tries again
        return reading.result()

    def _begin(self, snapshot: Snapshot, before: Model) -> Future[Model]:
        """Read a batch in another thread."""
        reading: Future[Model] = Future()

        def read() -> None:
            try:
                reading.set_result(self._read(snapshot, before))
            except BaseException as error:
                reading.set_exception(error)

        threading.Thread(target=read, name="pages-batch").start()
        return reading

    def _read(self, snapshot: Snapshot, before: Model | None) -> Model:
        batch, options = _batch(snapshot), self._options
        if self.kind == "logs":
            from barnabas_pipeline.pages.log_model import read_log_model

            show = options.show_addresses
            return read_log_model(snapshot, batch, before, show_addresses=show)
        from barnabas_pipeline.pages.hit_model import read_hit_model

        return read_hit_model(self.kind, snapshot, batch, options, before)


def _batch(snapshot: Snapshot) -> int:
    return 0 if snapshot.control is None else snapshot.control.batch


def _changed_ns(tables: Path) -> tuple[int, ...] | None:
    """Return when the control table was changed, or None if it may change again unnoticed.

    Each commit adds a file to its log. The clock of a file system may stand still for some
    milliseconds, or for seconds, so that a time may be that of several changes.
    """
    try:
        found = tuple((tables / "control" / each).stat().st_mtime_ns for each in ("", "_delta_log"))
    except OSError:
        return None
    return found if time.time_ns() - max(found) > _TICK_NS else None


def _kind(tables: Path) -> tuple[Kind, Layout]:
    """Return the kind of these tables. Raises ConfigError."""
    for kind, table, layout in _KINDS:
        if (tables / table).is_dir() and Snapshot(tables, layout).control is not None:
            return kind, layout
    raise ConfigError(
        f"no tables in {tables.parent}: run `python -m barnabas_pipeline run --out {tables.parent}`"
        " first"
    )


_KINDS: Final[tuple[tuple[Kind, str, Layout], ...]] = (
    ("events", "visitor_weeks", TRACKING),
    ("access", "statuses", BEHAVIOUR),
    ("logs", "entries", LOGS),
)
"""The kinds, each with a table that no other kind has."""
