"""Groups hits into sessions, which end when a visitor is silent for thirty minutes. Pure.

A visitor is an address together with a user agent. A session is an interval of a visitor's time,
and a single hit is the smallest session. Joining intervals that are less than `SILENCE_S` apart
gives the same sessions whether the hits come all at once, in any number of portions or in any
order:

    join(a ∪ b) = join(join(a) ∪ b)

Therefore, the table of sessions is the only state. It consists of parts: a batch adds the sessions
of its own hits, and readers join them. No session has to be closed, no timer fires, no watermark
drops a late line, and a line from the year 2099 does not close any session permanently. `open`
means only that the newest hit of all visitors is less than thirty minutes later than the session's
last hit.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from barnabas_pipeline.behaviour.schemas import SESSIONS
from barnabas_pipeline.instants import utc

SILENCE_S: Final = 30 * 60

DERIVED: Final = ("length_seconds", "bounce", "open", "automated")
"""The columns that `derive` adds. `bounce` marks a session with one page, and `automated` a session
of a visitor that behaves like a robot."""

_MANY_PAGES: Final = 30
"""A visitor that views this many pages and never loads anything else is unlikely to be a person."""

_ORDER: Final = ("time", "partition", "offset")


def single_hits(events: pl.DataFrame) -> pl.DataFrame:
    """Return each hit as a separate session; `events` have `time_us`, `host` and `day`."""
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
    )


def join(parts: pl.DataFrame) -> pl.DataFrame:
    """Join parts of sessions into sessions; both use schema `SESSIONS`."""
    parts = _numbered(parts)
    whole = parts.group_by("_session").agg(
        pl.col("client", "agent").first(),
        # This is equal in all parts, because it follows from the visitor's agent.
        pl.col("robot").any(),
        pl.col("start").min(),
        pl.col("end").max(),
        pl.col("hits", "pages", "bytes").sum(),
        pl.col("utc_offset_minutes").max(),
    )
    # Only page views count as entry or exit pages; a session with only assets has neither.
    pages = parts.filter(pl.col("entry_order").is_not_null())
    first = _sorted(pages, "entry_order").group_by("_session")
    last = _sorted(pages, "exit_order").group_by("_session")
    return (
        whole.join(
            first.agg(pl.col("entry", "referrer", "entry_order").first()), "_session", "left"
        )
        .join(last.agg(pl.col("exit", "exit_order").last()), "_session", "left")
        # A session that spans midnight belongs to the day of its last hit.
        .with_columns(pl.col("end").dt.date().alias("day"))
        .select(SESSIONS.names)
    )


def derive(sessions: pl.DataFrame, newest_s: int) -> pl.DataFrame:
    """Add the columns in `DERIVED` to sessions that `join` returned.

    `newest_s`: the time of the newest hit of all, in seconds since the epoch, which decides `open`.
    """
    end_s = pl.col("end").dt.epoch("s")
    return sessions.with_columns(
        (end_s - pl.col("start").dt.epoch("s")).alias("length_seconds"),
        (pl.col("pages") == 1).alias("bounce"),
        (newest_s - end_s < SILENCE_S).alias("open"),
        _is_automated().alias("automated"),
    )


def _is_automated() -> pl.Expr:
    """Return an expression that is true if a session's visitor views many pages and loads no
    assets.

    The rule applies only if most sessions with more than one page load assets; otherwise, another
    host probably serves the assets. The result depends only on sums, so it does not depend on how
    sessions were joined.
    """
    visitor = ("client", "agent")
    pages, hits = pl.col("pages").sum().over(visitor), pl.col("hits").sum().over(visitor)
    has_more = (pages > 1) & ~pl.col("robot")
    is_usual = 2 * ((hits > pages) & has_more).sum() > has_more.sum()
    return (pages >= _MANY_PAGES) & (hits == pages) & is_usual & ~pl.col("robot")


def _numbered(parts: pl.DataFrame) -> pl.DataFrame:
    """Return `parts`, each with the number of its `_session`."""
    visitor = ("client", "agent")
    parts = parts.sort(*visitor, "start", "end")
    is_new = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in visitor)
    # This is the latest end so far, not the end of the previous row, because a long part may
    # enclose a short one.
    last_end = pl.col("end").cum_max().shift(1).over(visitor)
    silence = pl.col("start") - last_end
    # A visitor's first part has no predecessor, so its silence is null.
    is_first = is_new | (silence >= pl.duration(seconds=SILENCE_S)).fill_null(True)
    return parts.with_columns(is_first.cum_sum().alias("_session"))


def _sorted(pages: pl.DataFrame, order: str) -> pl.DataFrame:
    return pages.sort([pl.col(order).struct.field(name) for name in _ORDER])
