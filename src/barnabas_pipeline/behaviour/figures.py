"""Reads the report's numbers from the tables.

The tables are plain Parquet, so this module reads them with Arrow instead of Spark. Reading
therefore needs neither a cluster nor Java, starts immediately, and does not disturb a running
service. Only sums and sessions are loaded, never individual events.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import polars as pl

from barnabas_pipeline.accounts import Accounts, DeadLetters, read_accounts, read_dead_letters
from barnabas_pipeline.behaviour.comparison import Comparison, compare
from barnabas_pipeline.behaviour.rankings import (
    KEPT,
    Missing,
    Rankings,
    mask_of,
    read_missing,
    read_rankings,
    site_of,
)
from barnabas_pipeline.behaviour.response_times import ResponseTimes, read_response_times
from barnabas_pipeline.behaviour.timeline import Timeline, timeline_of
from barnabas_pipeline.behaviour.visits import (
    SessionFigures,
    depths,
    lengths,
    read_sessions,
    session_figures,
)
from barnabas_pipeline.page.addresses import mask_addresses, mask_column
from barnabas_pipeline.view import View


class Figures(NamedTuple):
    """Everything that the report shows."""

    accounts: Accounts
    files: list[tuple[str, Accounts]]  # by name, without directories
    humans: SessionFigures
    robots: SessionFigures
    comparison: Comparison | None
    timeline: Timeline
    lengths: list[tuple[str, int]]  # human sessions by length
    depths: list[tuple[int, int]]  # human sessions by page views
    rankings: Rankings
    missing: list[Missing]
    statuses: list[tuple[int, int]]
    dead_letters: list[DeadLetters]
    times: ResponseTimes = ResponseTimes(None, [])
    site: str | None = None
    automated: SessionFigures = SessionFigures()  # people's sessions that resemble a robot's

    @property
    def hits(self) -> int:
        return sum(m.human_hits + m.robot_hits for m in self.timeline.moments)

    @property
    def robot_hits(self) -> int:
        return sum(m.robot_hits for m in self.timeline.moments)

    @property
    def errors(self) -> int:
        return sum(m.errors for m in self.timeline.moments)


def read_figures(view: View, *, show_addresses: bool = False) -> Figures:
    """Return the figures from a view's tables. Before the first batch, all figures are zero.

    `show_addresses`: show full addresses everywhere instead of only their networks.
    """
    mask, mask_all = (str, _as_they_are) if show_addresses else (mask_addresses, mask_column)
    accounts, files = read_accounts(view)
    sessions = read_sessions(view)
    humans, robots = sessions.filter(~pl.col("robot")), sessions.filter("robot")
    traffic, statuses = view.frame("traffic"), view.frame("statuses")
    rankings = read_rankings(view, humans, mask_all)
    site = site_of(view, rankings)
    histograms = view.frame("response_times").with_columns(mask_of("path", mask_all))
    return Figures(
        accounts=accounts,
        files=[(mask(Path(name).name), of_file) for name, of_file in files],
        humans=session_figures(humans),
        robots=session_figures(robots),
        comparison=compare(traffic, humans),
        timeline=timeline_of(traffic, statuses),
        lengths=lengths(humans),
        depths=depths(humans),
        rankings=rankings,
        missing=read_missing(view, mask_all),
        statuses=list(statuses.group_by("status").agg(pl.col("hits").sum()).sort("status").rows()),
        dead_letters=read_dead_letters(view, mask),
        times=read_response_times(histograms, KEPT),
        automated=session_figures(humans.filter("automated")),
        site=None if site is None else mask(site),
    )


def _as_they_are(texts: pl.Series) -> pl.Series:
    return texts
