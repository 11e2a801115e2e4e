"""Reads all figures of the tracking page from the tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from barnabas_pipeline.accounts import Accounts, DeadLetters, read_accounts, read_dead_letters
from barnabas_pipeline.behaviour.comparison import Comparison, compare
from barnabas_pipeline.behaviour.rankings import DIRECT, KEPT, Row, top
from barnabas_pipeline.behaviour.sessions import SILENCE_S
from barnabas_pipeline.behaviour.timeline import Timeline, timeline_of
from barnabas_pipeline.behaviour.visits import (
    SessionFigures,
    depths,
    lengths,
    read_sessions,
    session_figures,
)
from barnabas_pipeline.tracking.coded import MISSING, read_coded
from barnabas_pipeline.tracking.funnels import Funnel, FunnelFigures, read_funnel
from barnabas_pipeline.tracking.goals import Goal, GoalFigures, read_goals
from barnabas_pipeline.tracking.retention import Cohort, cohorts
from barnabas_pipeline.view import View

_STEP_COLUMNS: Final = ["visitor", "time", "partition", "offset", "path"]
_NONE: Final = "none"


class Named(NamedTuple):
    """People's events by name."""

    name: str
    events: int
    value: float


class Campaign(NamedTuple):
    """People's page views by campaign. Parts that are unknown are `none`."""

    source: str
    medium: str
    campaign: str
    views: int


class NextPage(NamedTuple):
    """How often people went from one page to another within a session."""

    page: str
    next: str
    times: int


class TrackingFigures(NamedTuple):
    """All figures on the page."""

    accounts: Accounts
    files: list[tuple[str, Accounts]]
    people: SessionFigures
    returning: int
    """The number of people with more than one session."""
    robots: int  # events
    late: int
    repeated: int
    comparison: Comparison | None
    timeline: Timeline
    lengths: list[tuple[str, int]]
    depths: list[tuple[int, int]]
    hosts: list[Row]
    pages: list[Row]
    sources: list[Row]
    entry_pages: list[Row]
    exit_pages: list[Row]
    devices: list[Row]
    languages: list[Row]
    names: list[Named]
    campaigns: list[Campaign]
    next_pages: list[NextPage]
    cohorts: list[Cohort]
    funnels: list[FunnelFigures]
    goals: list[GoalFigures]
    dead_letters: list[DeadLetters]


def read_figures(
    view: View, funnels: Sequence[Funnel] = (), goals: Sequence[Goal] = ()
) -> TrackingFigures:
    """Return the figures from a view's tables. Before the first batch, all figures are zero."""
    accounts, files = read_accounts(view)
    sessions = read_sessions(view)
    people = sessions.filter(~pl.col("robot"))
    visits = people.filter(pl.col("pages") > 0)
    traffic = view.frame("traffic")
    views = pl.col("views") - pl.col("robot_views")
    pages = view.frame("pages").with_columns(views.alias("people_views"))
    devices, arrivals = view.frame("devices"), view.frame("arrivals")
    people_figures, comparison = session_figures(people), compare(traffic, people)
    return TrackingFigures(
        accounts=accounts,
        files=[(Path(name).name, of_file) for name, of_file in files],
        people=people_figures,
        returning=people.group_by("client").len().filter(pl.col("len") > 1).height,
        robots=int(traffic["robot_hits"].sum()),
        late=int(arrivals["late"].sum()),
        repeated=int(arrivals["repeated"].sum()),
        comparison=comparison,
        timeline=timeline_of(traffic, as_statuses(traffic)),
        lengths=lengths(people),
        depths=depths(people),
        hosts=top(pages, "host", "people_views"),
        pages=top(pages, "path", "people_views"),
        sources=top(visits.with_columns(pl.col("referrer").fill_null(DIRECT)), "referrer"),
        entry_pages=top(visits, "entry"),
        exit_pages=top(visits, "exit"),
        devices=top(devices, "device", "views"),
        languages=top(devices, "language", "views"),
        names=_names(view),
        campaigns=_campaigns(view),
        next_pages=_next_pages(view),
        cohorts=cohorts(view.frame("visitor_weeks")),
        funnels=[read_funnel(view, funnel) for funnel in funnels],
        goals=read_goals(view, goals, people_figures.visitors, comparison),
        dead_letters=read_dead_letters(view),
    )


def as_statuses(traffic: pl.DataFrame) -> pl.DataFrame:
    """Return the traffic in the form of the table `statuses`, which does not exist for events."""
    return traffic.select(
        pl.col("minute").alias("hour"), pl.lit("events").alias("class"), pl.col("hits")
    )


def _names(view: View) -> list[Named]:
    people = pl.col("events") - pl.col("robot_events")
    rows = view.frame("names").group_by("name").agg(people.sum(), pl.col("value").sum())
    ordered = rows.filter(pl.col("events") > 0).sort("events", "name", descending=[True, False])
    return [Named(*row) for row in ordered.head(KEPT).iter_rows()]


def _campaigns(view: View) -> list[Campaign]:
    keys = ["source", "medium", "campaign"]
    rows = view.frame("campaigns").with_columns(pl.col(keys).fill_null(_NONE))
    summed = rows.group_by(keys).agg(pl.col("views").sum())
    ordered = summed.sort("views", *keys, descending=[True, False, False, False])
    return [Campaign(*row) for row in ordered.head(KEPT).iter_rows()]


def _next_pages(view: View) -> list[NextPage]:
    """Return the most frequent pairs of consecutive pages in people's sessions."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]

    is_view = pc.field("page_view") & ~pc.field("robot") & pc.field("visitor").is_valid()
    read = read_coded(view, _STEP_COLUMNS, is_view, ("visitor", "path"))
    following = read.rows.sort("visitor", "time", "partition", "offset").select(
        pl.col("path").alias("page"),
        pl.col("path").shift(-1).alias("next"),
        (pl.col("visitor") == pl.col("visitor").shift(-1)).alias("is_same"),
        (pl.col("time").shift(-1) - pl.col("time")).alias("pause_us"),
    )
    pairs = (
        following.filter("is_same", pl.col("pause_us") < SILENCE_S * 1_000_000)
        .filter(pl.col("page") != pl.col("next"), pl.col("page", "next") != MISSING)
        .group_by("page", "next")
        .agg(pl.len().alias("times"))
    )
    paths = read.texts["path"]
    named = pairs.with_columns(paths.gather(pairs[name]).alias(name) for name in ("page", "next"))
    leading = named.sort("times", "page", "next", descending=[True, False, False])
    return [NextPage(*row) for row in leading.head(KEPT).iter_rows()]
