"""The numbers behind the report, read from the tables.

They are read with Arrow, not with Spark: the tables are plain parquet, so looking at them needs
no cluster, no Java and no second of start-up, and a service that is at work is left in peace.
Only sums and the columns of sessions come into memory, never the events.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]

from barnabas.pipeline.accounts import Accounts, DeadLetters, read_accounts, read_dead_letters
from barnabas.pipeline.behaviour.definition import BEHAVIOUR
from barnabas.pipeline.behaviour.sessions import described
from barnabas.pipeline.behaviour.timeline import Timeline, read_timeline
from barnabas.pipeline.snapshot import Snapshot, to_arrow, top


class SessionFigures(NamedTuple):
    """Sessions of one kind of visitor."""

    visitors: int = 0
    sessions: int = 0
    open: int = 0
    bounces: int = 0
    with_pages: int = 0
    pages: int = 0
    median_length_s: float = 0.0

    @property
    def bounce_rate(self) -> float:
        """Bounces among the sessions that saw a page at all."""
        return self.bounces / self.with_pages if self.with_pages else 0.0


class Ranking(NamedTuple):
    """What leads in something: (name, how many), largest first."""

    title: str
    unit: str
    rows: list[tuple[str, int]]


class Figures(NamedTuple):
    """Everything that the report shows."""

    accounts: Accounts
    files: list[tuple[str, Accounts]]
    humans: SessionFigures
    robots: SessionFigures
    timeline: Timeline
    lengths: list[tuple[str, int]]  # human sessions by how long they took
    rankings: list[Ranking]
    statuses: list[tuple[int, int]]
    dead_letters: list[DeadLetters]


def read_figures(tables: Path) -> Figures:
    """The figures of the tables as they are now; all zero before the first batch."""
    snapshot = Snapshot(tables, BEHAVIOUR)
    accounts, files = read_accounts(snapshot)
    sessions = _sessions(snapshot)
    humans, robots = _split(sessions)
    return Figures(
        accounts=accounts,
        files=files,
        humans=_session_figures(humans),
        robots=_session_figures(robots),
        timeline=read_timeline(snapshot),
        lengths=_lengths(humans),
        rankings=_rankings(snapshot, humans),
        statuses=_statuses(snapshot),
        dead_letters=read_dead_letters(snapshot),
    )


_TOP = 10
_SESSION_COLUMNS = ["client", "agent", "robot", "length_seconds", "pages", "bounce", "open"]
_SESSION_COLUMNS += ["entry", "exit", "referrer"]
_LENGTHS = (
    (1, "0 s"),
    (10, "1–9 s"),
    (30, "10–29 s"),
    (60, "30–59 s"),
    (180, "1–2 min"),
    (600, "3–9 min"),
    (1800, "10–29 min"),
    (3600, "30–59 min"),
    (2**62, "1 h +"),
)


def _sessions(snapshot: Snapshot) -> pa.Table:
    newest_s = snapshot.control.newest_s if snapshot.control else None
    frame = described(snapshot.frame("sessions"), newest_s or 0)
    return to_arrow(frame.select(_SESSION_COLUMNS))


def _split(sessions: pa.Table) -> tuple[pa.Table, pa.Table]:
    if not sessions.num_rows:
        return sessions, sessions
    is_robot = sessions["robot"]
    return sessions.filter(pc.invert(is_robot)), sessions.filter(is_robot)


def _session_figures(sessions: pa.Table) -> SessionFigures:
    if not sessions.num_rows:
        return SessionFigures()
    with_pages = sessions.filter(pc.field("pages") > 0)
    return SessionFigures(
        visitors=sessions.group_by(["client", "agent"]).aggregate([]).num_rows,
        sessions=sessions.num_rows,
        open=_sum(sessions["open"]),
        bounces=_sum(sessions["bounce"]),
        with_pages=with_pages.num_rows,
        pages=_sum(sessions["pages"]),
        median_length_s=float(np.median(sessions["length_seconds"].to_numpy())),
    )


def _sum(column: pa.ChunkedArray) -> int:
    return int(pc.sum(column).as_py() or 0)


def _lengths(sessions: pa.Table) -> list[tuple[str, int]]:
    seconds = np.asarray(sessions["length_seconds"].to_numpy(), dtype=np.int64)
    bins = np.searchsorted([limit for limit, _ in _LENGTHS], seconds, side="right")
    counts = np.bincount(bins, minlength=len(_LENGTHS))
    return [(name, int(count)) for (_, name), count in zip(_LENGTHS, counts, strict=True)]


def _rankings(snapshot: Snapshot, humans: pa.Table) -> list[Ranking]:
    pages = snapshot.rows("pages", ["path", "views", "robot_views", "errors"])
    ones = pa.array(np.ones(humans.num_rows, dtype=np.int64))
    visits = humans.append_column("visits", ones).filter(pc.field("pages") > 0)
    human_views = pc.subtract(pages["views"], pages["robot_views"])
    return [
        Ranking(
            "Pages", "views", top(pages.append_column("human", human_views), "path", "human", _TOP)
        ),
        Ranking("Where visits come from", "sessions", _sources(snapshot, visits)),
        Ranking("First pages", "sessions", top(visits, "entry", "visits", _TOP)),
        Ranking("Last pages", "sessions", top(visits, "exit", "visits", _TOP)),
        Ranking(
            "Asked for, and answered with an error", "hits", top(pages, "path", "errors", _TOP)
        ),
    ]


def _sources(snapshot: Snapshot, visits: pa.Table) -> list[tuple[str, int]]:
    """The hosts that led to first pages; the site's own, after a silence, by that name."""
    own = _own_host(snapshot)
    named = top(
        visits.drop(["referrer"]).append_column("source", _named(visits)), "source", "visits", _TOP
    )
    return [("from the site itself" if name == own else name, count) for name, count in named]


def _named(visits: pa.Table) -> pa.ChunkedArray:
    return pc.fill_null(visits["referrer"].cast(pa.string()), "directly, or nobody knows")


def _own_host(snapshot: Snapshot) -> str | None:
    """The host that the site's pictures and scripts are referred by; None if no host stands out."""
    referrers = snapshot.rows("referrers", ["host", "hits", "pages"])
    assets = pc.subtract(referrers["hits"], referrers["pages"])
    leading = top(referrers.append_column("assets", assets), "host", "assets", 1)
    return leading[0][0] if leading and leading[0][1] * 2 > _sum(assets) else None


def _statuses(snapshot: Snapshot) -> list[tuple[int, int]]:
    rows = snapshot.rows("statuses", ["status", "hits"])
    summed = rows.group_by("status").aggregate([("hits", "sum")])
    return sorted((row["status"], row["hits_sum"]) for row in summed.to_pylist())
