"""Computes the number and the length of sessions, by kind of visitor."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import polars as pl

from barnabas_pipeline.behaviour.sessions import derive
from barnabas_pipeline.view import View

_LENGTHS: Final = (
    (1, "0 s"),
    (10, "1–9 s"),
    (30, "10–29 s"),
    (60, "30–59 s"),
    (180, "1–2 min"),
    (600, "3–9 min"),
    (1800, "10–29 min"),
    (3600, "30–59 min"),
    (2**62, "1+ hours"),
)


class SessionFigures(NamedTuple):
    """Session statistics for one kind of visitor."""

    visitors: int = 0
    sessions: int = 0
    open: int = 0
    bounces: int = 0
    with_pages: int = 0
    pages: int = 0
    median_length_s: float = 0.0

    @property
    def bounce_rate(self) -> float:
        """The share of bounces among sessions with at least one page."""
        return self.bounces / self.with_pages if self.with_pages else 0.0

    @property
    def pages_per_session(self) -> float:
        return self.pages / self.with_pages if self.with_pages else 0.0


def read_sessions(view: View) -> pl.DataFrame:
    """Return all sessions, with the columns that `derive` adds."""
    return derive(view.frame("sessions"), view.newest_s or 0)


def session_figures(sessions: pl.DataFrame) -> SessionFigures:
    """Return the figures of these sessions."""
    if not sessions.height:
        return SessionFigures()
    return SessionFigures(
        visitors=sessions.n_unique(["client", "agent"]),
        sessions=sessions.height,
        open=int(sessions["open"].sum()),
        bounces=int(sessions["bounce"].sum()),
        with_pages=int((sessions["pages"] > 0).sum()),
        pages=int(sessions["pages"].sum()),
        median_length_s=float(np.median(sessions["length_seconds"].to_numpy())),
    )


def depths(sessions: pl.DataFrame) -> list[tuple[int, int]]:
    """Count these sessions by number of page views."""
    return list(sessions.group_by("pages").agg(pl.len()).sort("pages").iter_rows())


def lengths(sessions: pl.DataFrame) -> list[tuple[str, int]]:
    """Count these sessions by length."""
    seconds = sessions["length_seconds"].to_numpy()
    bins = np.searchsorted([limit for limit, _ in _LENGTHS], seconds, side="right")
    counts = np.bincount(bins, minlength=len(_LENGTHS))
    return [(name, int(count)) for (_, name), count in zip(_LENGTHS, counts, strict=True)]
