"""Recognises robots by the user agent alone, so that a hit's classification never changes later.

Honest robots name themselves, usually with a contact address, and no browser leaves the field out.
A robot that imitates a browser is counted as human.
"""

from __future__ import annotations

_TOKENS = (
    # The names that they give themselves.
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
    # Only a robot gives web masters a page about itself, or an address to write to.
    "http:",
    "https:",
    "www.",
    "@",
)
# A phone with "bot" in its name.
_NO_ROBOT = "cubot"


def is_robot(agent: str | None) -> bool:
    """Return whether the agent is a program: it is missing or contains a word typical of robots."""
    if agent is None:
        return True
    name = agent.lower().replace(_NO_ROBOT, "")
    return any(token in name for token in _TOKENS)
