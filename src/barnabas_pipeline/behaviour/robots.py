"""Recognises robots by the user agent alone, so that a user agent is always classified in the same
way.

Honest robots identify themselves, usually with a contact address, and no browser omits its user
agent. Most robots are recognised by a list of words in this module. The others, such as libraries,
health checks and previews, are recognised by their names, which are listed in crawlerdetect, a list
maintained by many projects. Polars applies the patterns of crawlerdetect to whole columns, because
Python's regular expressions would take a millisecond per agent. A robot that imitates a browser is
counted as human.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, NamedTuple

import polars as pl
from crawlerdetect.providers.crawlers import (  # type: ignore[import-untyped]
    data as crawlers,
)
from crawlerdetect.providers.exclusions import (  # type: ignore[import-untyped]
    data as exclusions,
)

_TOKENS = (
    # Names that robots call themselves.
    "bot",
    "crawl",
    "spider",
    "slurp",
    "archiver",
    "scan",
    "grab",
    "monitor",
    "uptime",
    "preview",
    "externalhit",
    "headless",
    "lighthouse",
    # Feed readers fetch on a schedule.
    "feed",
    "rss/",
    "fetch",
    # Programs and libraries.
    "curl/",
    "wget",
    "python",
    "libwww",
    "ruby",
    "java/",
    "go-http-client",
    "okhttp",
    "httpclient",
    "scrapy",
    # Health checks and tools missing from crawlerdetect's list.
    "prometheus",
    "blackbox",
    "health check",
    "health-check",
    "healthcheck",
    "/health",
    "envoy/hc",
    "datadog",
    "grafana",
    "cloudfront",
    "azuretrafficmanager",
    "insomnia",
    "jmeter",
    "deno/",
    "bun/",
    # Only robots include a page about themselves, or an address for complaints.
    "http:",
    "https:",
    "www.",
    "@",
)
# The whole agent of Node's own client.
_NAMES = ("node",)
# A phone with "bot" in its name.
_NO_ROBOT = "cubot"

MOST_KEPT: Final = 65_536
"""The maximum number of agents remembered."""
_ESCAPE: Final = re.compile(r"\\([^A-Za-z0-9])")
_OTHER_SYNTAX: Final = re.compile(r"[][.^$*+?{}|()\\]")
_LOOK_AHEAD: Final = re.compile(r"\(\?[!=][^)]*\)")


class _List(NamedTuple):
    """The patterns of crawlerdetect, in the form that Polars searches fastest."""

    words: list[str]
    patterns: str
    ordinary: str  # parts of browsers' agents, removed first


def is_robot(agent: str | None) -> bool:
    """Return whether the user agent is missing, or identifies itself as a program."""
    return bool(are_robots(pl.Series([agent], dtype=pl.String))[0])


def are_robots(agents: pl.Series) -> pl.Series:
    """Return whether each agent is a program, as a column without nulls."""
    distinct, known = agents.drop_nulls().unique(), _memo()
    if len(known) + len(distinct) > MOST_KEPT:
        known.clear()
    new = [agent for agent in distinct if agent not in known]
    unnamed = [agent for agent in new if not _names_itself(agent)]
    known.update(dict.fromkeys(new, True))
    if unnamed:
        known.update(zip(unnamed, are_listed(pl.Series(unnamed)), strict=True))
    of_each = {agent: known[agent] for agent in distinct}
    return agents.replace_strict(of_each, default=True, return_dtype=pl.Boolean)


@cache
def _memo() -> dict[str, bool]:
    """Return the cache of classified agents, which is useful because most agents recur in every
    batch of a service.
    """
    return {}


def _names_itself(agent: str) -> bool:
    name = agent.lower().replace(_NO_ROBOT, "")
    return name in _NAMES or any(token in name for token in _TOKENS)


def are_listed(agents: pl.Series) -> pl.Series:
    """Return, for each agent, whether it matches crawlerdetect's list."""
    known = _list()
    rest = pl.col("agent").str.replace_all(known.ordinary, "").str.strip_chars()
    has_word = pl.col("rest").str.contains_any(known.words, ascii_case_insensitive=True)
    return (
        agents.to_frame("agent")
        .select(rest.alias("rest"))
        .select(has_word | pl.col("rest").str.contains(known.patterns))
        .to_series()
    )


@cache
def _list() -> _List:
    words, patterns = [], []
    for each in crawlers:
        # Polars lacks look-ahead; agents that it would exclude count as robots.
        pattern = _LOOK_AHEAD.sub("", each)
        if _OTHER_SYNTAX.search(_ESCAPE.sub("", pattern)):
            patterns.append(pattern)
        else:
            words.append(_ESCAPE.sub(r"\1", pattern))
    return _List(words, f"(?i)(?:{'|'.join(patterns)})", f"(?i)(?:{'|'.join(exclusions)})")
