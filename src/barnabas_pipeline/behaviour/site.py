"""Describes the fictional web site of the generated access log: its pages, guests and robots.

The module is plain data. No address belongs to a real visitor: all are from ranges reserved for
documentation and benchmarks (RFC 2544, 3849, 5737).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

ORIGIN = "https://castle.example"


class Robot(NamedTuple):
    """A robot, with the numbers of its visits per day, its hits per visit and its addresses."""

    agent: str
    visits_a_day: float
    hits_a_visit: int
    addresses: int


SECTIONS: Mapping[str, tuple[str, ...]] = {
    "/rooms": ("tower", "garden", "library", "kitchen", "stable", "attic", "chapel", "gatehouse"),
    "/journal": (
        "first-snow",
        "the-new-surveyor",
        "on-messengers",
        "repairing-the-roof",
        "a-walk-to-the-village",
        "the-inn-by-the-bridge",
        "letters-from-the-record-office",
        "what-the-mayor-said",
        "the-telephone-line",
        "thirty-minutes-of-silence",
        "winter-opening-hours",
        "the-choir-in-spring",
    ),
    "/visit": ("tickets", "opening-hours", "getting-here", "groups", "accessibility", "weddings"),
    "/shop": ("postcards", "honey", "candles", "the-guide-book", "woollen-scarf", "calendar"),
    "/history": ("counts", "maps", "archive", "restoration", "the-fire-of-1739"),
}
LONE_PAGES = ("/", "/search", "/contact", "/newsletter", "/about")

ASSETS = (
    "/static/site.css",
    "/static/site.js",
    "/static/fonts/garamond.woff2",
    "/static/logo.svg",
    "/favicon.ico",
)
SEARCH_WORDS = ("tickets", "castle+map", "wedding", "parking", "honey", "roof", "dog", "inn")

# Referrers to the first page, with their weights.
REFERRERS: tuple[tuple[str, ...], tuple[float, ...]] = (
    (
        "-",
        "https://www.google.com/",
        "https://duckduckgo.com/",
        "https://www.bing.com/",
        "https://en.wikipedia.org/wiki/List_of_castles",
        "https://news.ycombinator.com/item?id=40100200",
        "https://www.reddit.com/r/castles/",
        "https://mastodon.social/@castles",
        "https://www.tripadvisor.com/Attractions",
        "https://village-inn.example/around-us",
        "https://letters.example/issue/42",
    ),
    (34.0, 30.0, 7.0, 6.0, 6.0, 4.0, 4.0, 3.0, 3.0, 2.0, 1.0),
)

BROWSERS: tuple[tuple[str, ...], tuple[float, ...]] = (
    (
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
            " Chrome/122.0.0.0 Safari/537.36"
        ),
        (
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_3 like Mac OS X) AppleWebKit/605.1.15"
            " (KHTML, like Gecko) Version/17.3 Mobile/15E148 Safari/604.1"
        ),
        (
            "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko)"
            " Chrome/122.0.0.0 Mobile Safari/537.36"
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML,"
            " like Gecko) Version/17.3.1 Safari/605.1.15"
        ),
        "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:123.0) Gecko/20100101 Firefox/123.0",
        "Mozilla/5.0 (X11; Linux x86_64; rv:123.0) Gecko/20100101 Firefox/123.0",
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
            " Chrome/122.0.0.0 Safari/537.36 Edg/122.0.0.0"
        ),
    ),
    (30.0, 22.0, 20.0, 12.0, 9.0, 4.0, 3.0),
)

ROBOTS: tuple[Robot, ...] = (
    Robot("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", 90.0, 4, 12),
    Robot("Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)", 60.0, 3, 8),
    Robot("Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", 24.0, 3, 4),
    Robot("Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)", 12.0, 14, 3),
    Robot("Mozilla/5.0 (compatible; archive.org_bot; +http://archive.org/details/bot)", 2.0, 40, 1),
    Robot("Feedly/1.0 (+http://www.feedly.com/fetcher.html; like FeedFetcher-Google)", 48.0, 1, 2),
    Robot("UptimeRobot/2.0", 288.0, 1, 1),
    Robot("python-requests/2.31.0", 10.0, 6, 5),
    Robot("curl/8.5.0", 6.0, 1, 4),
)

SCANNED_PATHS = (
    "/wp-login.php",
    "/.env",
    "/xmlrpc.php",
    "/admin/config.php",
    "/.git/config",
    "/phpmyadmin/index.php",
    "/cgi-bin/luci",
    "/backup.zip",
)
SCANNER_AGENT = "Mozilla/5.0 zgrab/0.x"
