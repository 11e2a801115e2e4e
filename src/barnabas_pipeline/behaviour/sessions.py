"""Groups hits into sessions, which end when a visitor is silent for thirty minutes. Pure.

A visitor is an address plus a user agent. A session is an interval of a visitor's time, and a
single hit is the smallest session. Joining intervals less than `SILENCE_S` apart yields the same
sessions whether the hits arrive all at once, in portions, or in any order:

    join(a ∪ b) = join(join(a) ∪ b)

The table of sessions is therefore the only state. It consists of parts: each batch adds the
sessions of its hits, and readers join the parts. Sessions need not be closed, so there are no
timers, no watermark drops late lines, and a line dated 2099 does not close any session permanently.
`open` means only that the last hit of the session is less than thirty minutes older than the newest
hit of all visitors.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from barnabas_pipeline.behaviour.schemas import SESSIONS
from barnabas_pipeline.instants import utc

SILENCE_S: Final = 30 * 60

DERIVED: Final = ("length_seconds", "bounce", "open", "automated")
"""The columns that `derive` adds. `bounce` marks a session with a single page view, and `automated`
marks a session whose visitor behaves like a robot."""

_MANY_PAGES: Final = 30
"""A visitor that views this many pages and loads nothing else is unlikely to be a person."""

_FEWEST_BEATS: Final = 12
"""This many requests for one page at a fixed interval are unlikely to come from a person."""

_SHORTEST_BEAT_S: Final = 5
"""Log times have a resolution of one second, so shorter intervals cannot be told apart."""

_TOLERANCE: Final = 0.05
_TOLERANCE_S: Final = 1.0
"""An interval may differ from the mean by `_TOLERANCE` times the mean or by this time, whichever is
larger.
"""

_ORDER: Final = ("time", "partition", "offset")
_VISITOR: Final = ("client", "agent")


def single_hits(events: pl.DataFrame) -> pl.DataFrame:
    """Return each hit as a separate session. `events` must have the columns `time_us`, `host` and
    `day`.
    """
    page = pl.col("page_view")
    time = utc(pl.col("time_us"))
    order = pl.struct(time.alias("time"), "partition", "offset")
    path = pl.when(page).then(pl.col("path"))
    return events.select(
        "client",
        "agent",
        "robot",
        time.alias("start"),
        time.alias("end"),
        pl.lit(1, pl.Int64).alias("hits"),
        page.cast(pl.Int64).alias("pages"),
        pl.col("bytes").fill_null(0),
        path.alias("entry"),
        path.alias("exit"),
        pl.when(page).then("host").alias("referrer"),
        "utc_offset_minutes",
        pl.when(page).then(order).alias("entry_order"),
        pl.when(page).then(order).alias("exit_order"),
        "day",
        pl.when(page & ~pl.col("robot")).then(pl.concat_list(time)).alias("first_hits"),
    )


def join(parts: pl.DataFrame) -> pl.DataFrame:
    """Join parts of sessions into sessions; both use schema `SESSIONS`."""
    parts = _numbered(parts)
    whole = parts.group_by("_session").agg(
        pl.col("client", "agent").first(),
        # This is the same in all parts, because it depends only on the visitor's agent.
        pl.col("robot").any(),
        pl.col("start").min(),
        pl.col("end").max(),
        pl.col("hits", "pages", "bytes").sum(),
        pl.col("utc_offset_minutes").max(),
    )
    # Only page views count as entry or exit pages; a session of only assets has neither.
    pages = parts.filter(pl.col("entry_order").is_not_null())
    first = _sorted(pages, "entry_order").group_by("_session")
    last = _sorted(pages, "exit_order").group_by("_session")
    return (
        whole.join(
            first.agg(pl.col("entry", "referrer", "entry_order").first()), "_session", "left"
        )
        .join(last.agg(pl.col("exit", "exit_order").last()), "_session", "left")
        .join(_first_hits(parts, whole), "_session", "left")
        # A session that spans midnight belongs to the day of its last hit.
        .with_columns(pl.col("end").dt.date().alias("day"))
        .select(SESSIONS.names)
    )


def derive(sessions: pl.DataFrame, newest_s: int) -> pl.DataFrame:
    """Add the columns in `DERIVED` to sessions that `join` returned.

    `newest_s`: the time of the newest hit of all visitors, in seconds since the epoch, which
    determines `open`.
    """
    end_s = pl.col("end").dt.epoch("s")
    steady = _steady_visitors(sessions).with_columns(pl.lit(True).alias("_steady"))
    is_steady = pl.col("_steady").fill_null(False)
    return (
        sessions.join(steady, _VISITOR, "left", nulls_equal=True, maintain_order="left")
        .with_columns(
            (end_s - pl.col("start").dt.epoch("s")).alias("length_seconds"),
            (pl.col("pages") == 1).alias("bounce"),
            (newest_s - end_s < SILENCE_S).alias("open"),
            (_views_many() | is_steady).alias("automated"),
        )
        .drop("_steady")
    )


def _views_many() -> pl.Expr:
    """Return an expression that is true for the sessions of visitors that view many pages but load
    no assets.

    The rule applies only if most sessions with more than one page load assets; otherwise, another
    host probably serves the assets. The result depends only on sums, and not on how the sessions
    were joined.
    """
    pages, hits = pl.col("pages").sum().over(_VISITOR), pl.col("hits").sum().over(_VISITOR)
    has_more = (pages > 1) & ~pl.col("robot")
    is_usual = 2 * ((hits > pages) & has_more).sum() > has_more.sum()
    return (pages >= _MANY_PAGES) & (hits == pages) & is_usual & ~pl.col("robot")


def _steady_visitors(sessions: pl.DataFrame) -> pl.DataFrame:
    """Return the visitors that view a single page at a fixed interval and load nothing else.

    The views are either within a session or, if the interval is longer than the silence that ends a
    session, each in a session of its own. The result depends only on sums and on the first hits,
    and not on how the sessions were joined.
    """
    people = sessions.filter(~pl.col("robot")).sort(*_VISITOR, "start")
    is_next = pl.all_horizontal(pl.col(each).eq_missing(pl.col(each).shift(1)) for each in _VISITOR)
    visitors = (
        people.with_columns(
            pl.when(is_next).then(_seconds(pl.col("start").diff())).alias("gap"),
            _keeps_beat().alias("keeps_beat"),
        )
        .group_by(_VISITOR)
        .agg(
            pl.len().alias("sessions"),
            pl.col("hits", "pages").sum(),
            pl.min_horizontal("entry", "exit").min().alias("first_path"),
            pl.max_horizontal("entry", "exit").max().alias("last_path"),
            pl.col("gap").min().alias("shortest"),
            pl.col("gap").max().alias("longest"),
            pl.col("gap").mean().alias("mean"),
            pl.col("keeps_beat").any(),
        )
    )
    are_single = (pl.col("hits") == pl.col("sessions")) & (pl.col("sessions") >= _FEWEST_BEATS)
    returns = are_single & _are_near(pl.col("shortest"), pl.col("longest"), pl.col("mean"))
    return visitors.filter(
        (pl.col("hits") == pl.col("pages"))
        & (pl.col("first_path") == pl.col("last_path"))
        & (pl.col("keeps_beat") | returns)
    ).select(_VISITOR)


def _keeps_beat() -> pl.Expr:
    """Return an expression that is true if a session lasts at least half an hour and the intervals
    between its first hits are close to the mean interval of all its hits."""
    length_s = _seconds(pl.col("end") - pl.col("start"))
    gaps_us = pl.col("first_hits").cast(pl.List(pl.Int64)).list.diff(null_behavior="drop")
    is_long = (length_s >= SILENCE_S) & (pl.col("first_hits").list.len() == _FEWEST_BEATS)
    shortest_s, longest_s = gaps_us.list.min() / 1_000_000, gaps_us.list.max() / 1_000_000
    return (is_long & _are_near(shortest_s, longest_s, length_s / (pl.col("hits") - 1))).fill_null(
        False
    )


def _are_near(shortest_s: pl.Expr, longest_s: pl.Expr, mean_s: pl.Expr) -> pl.Expr:
    """Return whether the intervals, the shortest and the longest of which are given, are all close
    to the mean.
    """
    tolerance_s = pl.max_horizontal(mean_s * _TOLERANCE, pl.lit(_TOLERANCE_S))
    is_near = (mean_s - shortest_s <= tolerance_s) & (longest_s - mean_s <= tolerance_s)
    return is_near & (mean_s >= _SHORTEST_BEAT_S)


def _seconds(duration: pl.Expr) -> pl.Expr:
    return duration.dt.total_microseconds() / 1_000_000


def _first_hits(parts: pl.DataFrame, whole: pl.DataFrame) -> pl.DataFrame:
    """Return the times of the first hits of each session in which a person views only pages."""
    wanted = whole.filter((pl.col("hits") == pl.col("pages")) & ~pl.col("robot"))
    times = parts.select("_session", "first_hits").join(wanted, "_session", "semi")
    return (
        times.explode("first_hits")
        # Rows from earlier versions lack these times.
        .drop_nulls("first_hits")
        .sort("_session", "first_hits")
        .group_by("_session", maintain_order=True)
        .agg(pl.col("first_hits").head(_FEWEST_BEATS))
    )


def _numbered(parts: pl.DataFrame) -> pl.DataFrame:
    """Return `parts` with the column `_session`, which contains the number of each
    part's session.
    """
    parts = parts.sort(*_VISITOR, "start", "end")
    is_new = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in _VISITOR)
    # Use the latest end so far, not the end of the previous row, because a long part may enclose a
    # short one.
    last_end = pl.col("end").cum_max().shift(1).over(_VISITOR)
    silence = pl.col("start") - last_end
    # A visitor's first part has no predecessor, so its silence is null.
    is_first = is_new | (silence >= pl.duration(seconds=SILENCE_S)).fill_null(True)
    return parts.with_columns(is_first.cum_sum().alias("_session"))


def _sorted(pages: pl.DataFrame, order: str) -> pl.DataFrame:
    return pages.sort([pl.col(order).struct.field(name) for name in _ORDER])
