"""Reads the tables of a pipeline into a model, and again after each batch.

The kind of a pipeline is recorded in its tables, so that no option has to name it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
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
        self._model: Model | None = None

    def model(self) -> Model:
        """Return a model of the newest batch, which may take seconds after a batch."""
        with self._lock:
            snapshot = Snapshot(self._tables, self._layout)
            batch = _batch(snapshot)
            if self._model is None or self._model.site["batch"] != batch:
                self._model = _read(self.kind, snapshot, batch, self._options)
            return self._model


def _batch(snapshot: Snapshot) -> int:
    return 0 if snapshot.control is None else snapshot.control.batch


def _read(kind: Kind, snapshot: Snapshot, batch: int, options: Options) -> Model:
    if kind == "logs":
        from barnabas_pipeline.pages.log_model import read_log_model

        return read_log_model(snapshot, batch, show_addresses=options.show_addresses)
    from barnabas_pipeline.pages.hit_model import read_hit_model

    return read_hit_model(kind, snapshot, batch, options)


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
