"""Who is no human: told from the user agent alone, so that a hit's mark never changes later.

Honest robots name themselves, mostly with an address to complain to, and no browser leaves the
field out. A robot that dresses as a browser is counted as human.
"""

from __future__ import annotations

_TOKENS = (
    # What they call themselves.
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
    # Feed readers fetch on a schedule, whether anybody reads or not.
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
    # Only a robot tells a web master where to read about it, or whom to write to.
    "http:",
    "https:",
    "www.",
    "@",
)
# A telephone with "bot" in its name.
_NO_ROBOT = "cubot"


def is_robot(agent: str | None) -> bool:
    """Whether this user agent, None for a missing one, belongs to a program."""
    if agent is None:
        return True
    name = agent.lower().replace(_NO_ROBOT, "")
    return any(token in name for token in _TOKENS)
