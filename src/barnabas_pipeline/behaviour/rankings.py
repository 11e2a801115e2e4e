"""Ranks pages, sources, browsers, robots and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import polars as pl

from barnabas.counted import counted
from barnabas_pipeline.view import View

SHOWN: Final = 10
"""The number of rows shown on the page."""
KEPT: Final = 1_000
"""The number of rows kept in the files next to the page."""

_LEADING_REFERRERS: Final = 3

UNKNOWN: Final = "Unknown"
UNREADABLE: Final = "Not a request"
DIRECT: Final = "Direct or unknown"
SAME_SITE: Final = "This site"
NO_REFERRER: Final = "none"

_BY_HOST: Final = ("virtual_host", "hits", "bytes")

Mask = Callable[[pl.Series], pl.Series]


class Row(NamedTuple):
    name: str
    total: int
    size_bytes: int | None = None


class Missing(NamedTuple):
    """A missing path and its referrers, the most frequent first."""

    path: str
    people_hits: int
    robot_hits: int
    referrers: list[tuple[str, int]]  # including robots' requests


class Rankings(NamedTuple):
    """The rankings, each in descending order."""

    pages: list[Row]
    sources: list[Row]
    entry_pages: list[Row]
    exit_pages: list[Row]
    browsers: list[Row]
    systems: list[Row]
    devices: list[Row]
    robots: list[Row]
    errors: list[Row]
    hosts: list[Row]
    methods: list[Row]
    formats: list[Row]


def read_rankings(view: View, people: pl.DataFrame, mask: Mask) -> Rankings:
    """Return all rankings.

    `people`: the sessions of people. `mask`: a function that hides network addresses in text.
    """
    # A session of only assets has neither an entry page nor a source.
    visits = people.filter(pl.col("pages") > 0)
    views = pl.col("views") - pl.col("robot_views")
    pages = view.frame("pages").with_columns(mask_of("path", mask), views.alias("people_views"))
    agents = view.frame("agents").with_columns(mask_of("name", mask))
    # A user agent has one row per day, always with the same names.
    names = agents.unique("agent", keep="any").select("agent", "name", "system", "device")
    visitors = people.select("client", "agent").unique()
    browsers = visitors.join(names, "agent", "left", nulls_equal=True)
    return Rankings(
        pages=top(pages, "path", "people_views", "bytes"),
        sources=_sources(view, visits, mask),
        entry_pages=top(visits.with_columns(mask_of("entry", mask)), "entry"),
        exit_pages=top(visits.with_columns(mask_of("exit", mask)), "exit"),
        browsers=top(browsers, "name"),
        systems=top(browsers, "system"),
        devices=top(browsers, "device"),
        robots=top(agents.filter("robot"), "name", "hits", "bytes"),
        errors=top(pages, "path", "errors"),
        hosts=top(view.frame("hosts").with_columns(mask_of("virtual_host", mask)), *_BY_HOST),
        methods=top(_named_methods(view), "name", "hits"),
        formats=top(view.frame("formats"), "format", "lines"),
    )


def read_missing(view: View, mask: Mask) -> list[Missing]:
    """Return the missing paths, starting with the paths that people requested most often."""
    rows = view.frame("missing").with_columns(
        (pl.col("hits") - pl.col("robot_hits")).alias("people_hits"),
        mask_of("path", mask),
        mask_of("referrer", mask).fill_null(NO_REFERRER),
    )
    by_path = rows.group_by("path").agg(pl.col("people_hits", "robot_hits").sum())
    order = ("people_hits", "robot_hits", "path")
    wanted = by_path.sort(*order, descending=[True, True, False]).head(KEPT)
    pairs = rows.group_by("path", "referrer").agg(pl.col("hits").sum())
    led: dict[str, list[tuple[str, int]]] = {}
    ordered = pairs.sort("hits", "referrer", descending=[True, False])
    for path, referrer, hits in ordered.join(wanted, "path", "semi").iter_rows():
        led.setdefault(path, []).append((referrer, hits))
    return [
        Missing(path, people_hits, robot_hits, led[path][:_LEADING_REFERRERS])
        for path, people_hits, robot_hits in wanted.iter_rows()
    ]


def mask_of(name: str, mask: Mask) -> pl.Expr:
    """Return a column with its addresses masked."""
    return pl.col(name).map_batches(mask, return_dtype=pl.String)


def top(
    frame: pl.DataFrame, key: str, count: str | None = None, size: str | None = None
) -> list[Row]:
    """Return the keys with the largest sums of the column `count`, or with the most rows if it is
    None. Sums of zero are omitted.
    """
    rows = frame.select(
        pl.col(key).fill_null(UNKNOWN).alias("name"),
        (pl.col(count) if count else pl.lit(1, pl.Int64)).alias("count"),
        (pl.col(size) if size else pl.lit(None, pl.Int64)).alias("size"),
    )
    # Nulls alone add up to 0, which would count as a size.
    sizes = pl.col("size").sum() if size else pl.col("size").first()
    summed = rows.group_by("name").agg(pl.col("count").sum(), sizes)
    leading = summed.filter(pl.col("count") > 0).sort("count", "name", descending=[True, False])
    return [Row(*row) for row in leading.head(KEPT).iter_rows()]


def _sources(view: View, visits: pl.DataFrame, mask: Mask) -> list[Row]:
    """Return the hosts that referred visitors to entry pages.

    If the site itself is the referrer, as after a pause, it is listed as `SAME_SITE`.
    """
    own = own_host(view)
    source = (
        pl.when(pl.col("referrer").is_null())
        .then(pl.lit(DIRECT))
        .when(pl.col("referrer") == pl.lit(own))
        .then(pl.lit(SAME_SITE))
        .otherwise(mask_of("referrer", mask))
    )
    return top(visits.select(source.alias("source")), "source")


def _named_methods(view: View) -> pl.DataFrame:
    # HTTP/0.9 requests, and lines in formats without a protocol, have only the method.
    words = pl.concat_str("method", "protocol", separator=" ", ignore_nulls=True)
    name = pl.when(pl.col("method").is_null()).then(pl.lit(UNREADABLE)).otherwise(words)
    return view.frame("methods").with_columns(name.alias("name"))


def site_of(view: View, rankings: Rankings) -> str | None:
    """Return the site's name: its virtual host, or the referrer of its assets.

    Returns None if the lines have neither.
    """
    if rankings.hosts:
        more = len(rankings.hosts) - 1
        others = f" and {counted(more, 'other host')}" if more else ""
        return f"{rankings.hosts[0].name}{others}"
    return own_host(view)


def own_host(view: View) -> str | None:
    """Return the host that is the main referrer to the site's images and scripts, or None if no
    host stands out.
    """
    assets = (pl.col("hits") - pl.col("pages")).alias("assets")
    hosts = top(view.frame("referrers").with_columns(assets), "host", "assets")
    total = sum(row.total for row in hosts)
    return hosts[0].name if hosts and hosts[0].total * 2 > total else None
