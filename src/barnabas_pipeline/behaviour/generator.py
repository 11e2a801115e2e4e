"""Generates the access log of a fictional web site; the same seed yields the same bytes.

Guests arrive in a Poisson process whose rate depends on the hour and the weekday; each guest visits
a few pages and fetches their assets. Robots follow their own schedules, a scanner requests missing
pages, and on the second Thursday, the search fails for three hours. As in any real log, some lines
are identical, some are malformed, and some use an old encoding.

Each hit is kept in a heap until no earlier hit can be generated, so memory use does not grow with
the length of the log.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from itertools import count, islice
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from barnabas_pipeline.behaviour import site
from barnabas_pipeline.behaviour.guests import Guests, Pages

DEFAULT_LINES = 100_000
DEFAULT_SEED = 1926

_ZONE = timezone(timedelta(hours=1))
_BEGIN_S = int(datetime(2026, 3, 2, tzinfo=_ZONE).timestamp())  # a Monday
_DAY_S = 86_400
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_LONGEST_DAYS = 14.0
_LINES_A_DAY = 5_000  # a shorter log covers fewer days, a longer one has busier days
_ROBOT_SHARE = 0.17
_HITS_A_GUEST = 8.2

_BY_HOUR = (
    *(0.18, 0.11, 0.07, 0.05, 0.06, 0.12, 0.27, 0.48, 0.66, 0.78, 0.84, 0.90),
    *(1.00, 0.92, 0.80, 0.76, 0.74, 0.78, 0.86, 0.98, 1.00, 0.86, 0.60, 0.34),
)
_BY_WEEKDAY = (0.78, 0.74, 0.76, 0.82, 0.92, 1.00, 0.96)
_OUTAGE_S = range(10 * _DAY_S + 18 * 3600, 10 * _DAY_S + 21 * 3600)

_EQUAL_SHARE = 0.0015
_MALFORMED_SHARE = 0.004


class _Hit(NamedTuple):
    """A line to be written later. It is ordered in the heap by `at_s`, in seconds since the start,
    and then by `number`.
    """

    at_s: float
    number: int
    address: str
    agent: str
    request: str
    status: int
    size_bytes: int
    referrer: str


Visit = tuple[float, Callable[[float], None]]
"""A time and the action to take at that time."""


def write_log(path: Path, lines: int = DEFAULT_LINES, seed: int = DEFAULT_SEED) -> None:
    """Write exactly `lines` lines to `path`, atomically."""
    temporary = path.with_name(f"{path.name}.new")
    with temporary.open("wb") as file:
        file.writelines(generate(lines, seed))
    temporary.replace(path)


def generate(lines: int = DEFAULT_LINES, seed: int = DEFAULT_SEED) -> Iterator[bytes]:
    """Yield the lines in chronological order, each with its line feed."""
    source = random.Random(seed)
    days = min(_LONGEST_DAYS, max(1.0, lines / _LINES_A_DAY))
    hits = _Site(source).hits(lines / days)
    return islice(_damaged(source, map(_formatted, hits)), lines)


def _formatted(hit: _Hit) -> bytes:
    return (
        f'{hit.address} - - [{_clock(int(hit.at_s))}] "{hit.request}" {hit.status}'
        f' {hit.size_bytes} "{hit.referrer}" "{hit.agent}"\n'
    ).encode()


def _clock(at_s: int) -> str:
    at = datetime.fromtimestamp(_BEGIN_S + at_s, _ZONE)
    return f"{at.day:02}/{_MONTHS[at.month - 1]}/{at.year}:{at:%H:%M:%S} +0100"


class _Site:
    """Generates an endless sequence of hits on the site, in chronological order."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._numbers = count()
        self._waiting: list[_Hit] = []
        self._guests = Guests(source)
        self._pages = Pages(source)

    def hits(self, per_day: float) -> Iterator[_Hit]:
        """Yield about `per_day` hits per day."""
        visits = heapq.merge(
            self._arrivals(per_day * (1 - _ROBOT_SHARE) / _HITS_A_GUEST),
            self._scans(),
            *self._robots(per_day * _ROBOT_SHARE),
            key=itemgetter(0),
        )
        for at_s, happens in visits:
            while self._waiting and self._waiting[0].at_s <= at_s:
                yield heapq.heappop(self._waiting)
            happens(at_s)

    # ---- arrivals ----

    def _arrivals(self, per_day: float) -> Iterator[Visit]:
        """Yield guest visits from a Poisson process that is thinned according to the hour
        and the weekday."""
        mean = sum(_BY_HOUR) / 24 * sum(_BY_WEEKDAY) / 7
        busiest = per_day / _DAY_S / mean
        at_s = 0.0
        while True:
            at_s += self._random.expovariate(busiest)
            day, second = divmod(at_s, _DAY_S)
            hour = second / 3600
            here, next_hour = _BY_HOUR[int(hour)], _BY_HOUR[(int(hour) + 1) % 24]
            by_hour = here + (next_hour - here) * (hour % 1)
            if self._random.random() < by_hour * _BY_WEEKDAY[int(day) % 7]:
                yield at_s, self._visit

    def _robots(self, per_day: float) -> Iterator[Iterator[Visit]]:
        natural = sum(robot.visits_a_day * robot.hits_a_visit for robot in site.ROBOTS)
        for robot in site.ROBOTS:
            addresses = [self._guests.address() for _ in range(robot.addresses)]
            yield self._robot_visits(
                robot, addresses, _DAY_S / robot.visits_a_day, per_day / natural
            )

    def _robot_visits(
        self, robot: site.Robot, addresses: list[str], every_s: float, scale: float
    ) -> Iterator[Visit]:
        def visit(at_s: float) -> None:
            address = self._random.choice(addresses)
            for _ in range(robot.hits_a_visit):
                page = self._pages.any()
                status = 200 if self._random.random() < 0.93 else 304
                self._queue(at_s, (address, robot.agent), f"GET {page}", status)
                at_s += self._random.uniform(1, 9)

        at_s = self._random.uniform(0, every_s)
        while True:
            yield at_s, visit
            # Robots visit at approximately equal intervals.
            at_s += every_s / scale * self._random.uniform(0.9, 1.1)

    def _scans(self) -> Iterator[Visit]:
        """Yield the visits of a scanner that probes for weaknesses every day or two."""

        def scan(at_s: float) -> None:
            address = self._guests.address()
            for path in site.SCANNED_PATHS * 6:
                self._queue(at_s, (address, site.SCANNER_AGENT), f"GET {path}", 404)
                at_s += self._random.uniform(0.1, 0.8)
            self._queue(at_s, (address, ""), None, 400)

        at_s = 0.0
        while True:
            at_s += self._random.uniform(0.3, 2.4) * _DAY_S
            yield at_s, scan

    # ---- a visit ----

    def _visit(self, at_s: float) -> None:
        address, agent, has_cached = self._guests.next()
        guest = (address, agent)
        referrer = self._random.choices(*site.REFERRERS)[0]
        page = self._pages.popular()
        for turn in range(self._page_count()):
            self._show(at_s, guest, page, referrer, has_cached=has_cached or turn > 0)
            referrer = site.ORIGIN + page
            at_s += min(1500.0, self._random.lognormvariate(3.6, 1.0)) + 2
            if self._random.random() < 0.03:
                at_s += self._random.uniform(900, 4000)  # the guest is looking at a real castle
            page = self._next_page(page)

    def _page_count(self) -> int:
        if self._random.random() < 0.44:
            return 1
        return 2 + min(18, int(self._random.expovariate(0.38)))

    def _next_page(self, page: str) -> str:
        if self._random.random() < 0.5:
            return self._pages.beside(page)
        return self._pages.popular()

    def _show(
        self, at_s: float, guest: tuple[str, str], page: str, referrer: str, *, has_cached: bool
    ) -> None:
        """Add the hits for a page and its assets."""
        chance = self._random.random()
        if page == "/search":
            word = self._random.choice(site.SEARCH_WORDS)
            is_out = int(at_s) in _OUTAGE_S and chance < 0.9
            self._queue(at_s, guest, f"GET /search?q={word}", 500 if is_out else 200, referrer)
        elif int(at_s) in _OUTAGE_S and chance < 0.12:
            self._queue(at_s, guest, f"GET {page}", 502, referrer)
            return
        elif chance < 0.012:
            self._queue(at_s, guest, f"GET {page.rstrip('/')}/index.html", 404, referrer)
            return
        elif chance < 0.03:
            self._queue(at_s, guest, f"GET {page.rstrip('/')}/", 301, referrer)
            self._queue(at_s + 0.1, guest, f"GET {page}", 200, referrer)
        else:
            self._queue(
                at_s, guest, f"GET {page}", 304 if has_cached and chance > 0.9 else 200, referrer
            )
        origin = site.ORIGIN + page
        for asset in () if has_cached else site.ASSETS:
            self._queue(at_s + self._random.uniform(0.1, 1.5), guest, f"GET {asset}", 200, origin)
        picture = f"/pictures{page if page != '/' else '/castle'}.webp"
        self._queue(at_s + self._random.uniform(0.2, 2.5), guest, f"GET {picture}", 200, origin)
        if page.startswith("/shop/") and self._random.random() < 0.2:
            self._queue(at_s + 30, guest, "POST /shop/basket", 302, origin)

    def _queue(
        self,
        at_s: float,
        visitor: tuple[str, str],
        request: str | None,
        status: int,
        referrer: str = "-",
    ) -> None:
        address, agent = visitor
        path = request.partition(" ")[2] if request else ""
        size_bytes = self._pages.size_bytes(path) if status == 200 else (0, 312)[status >= 400]
        hit = _Hit(
            at_s,
            next(self._numbers),
            address,
            agent or "-",
            f"{request} HTTP/{'2.0' if size_bytes % 5 else '1.1'}" if request else r"\x16\x03\x01",
            status,
            size_bytes,
            referrer,
        )
        heapq.heappush(self._waiting, hit)


def _damaged(source: random.Random, lines: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines, some of them followed by an identical or damaged copy."""
    for line in lines:
        yield line
        chance = source.random()
        if chance < _EQUAL_SHARE:
            yield line
        elif chance < _EQUAL_SHARE + _MALFORMED_SHARE:
            yield source.choice(_DAMAGES)(line)


_DAMAGES: tuple[Callable[[bytes], bytes], ...] = (
    lambda line: line[: len(line) * 3 // 5] + b"\n",
    lambda line: line[: line.index(b'"')] + b"\n",
    lambda line: line.replace(b"Mar/2026", b"Foo/2026"),
    lambda line: line.replace(b'" 200 ', b'" 2OO ').replace(b'" 304 ', b'" 3O4 '),
    lambda line: line.replace(b'" 200 ', b'" 200 -').replace(b'" 304 ', b'" 304 -1'),
    lambda line: line.replace(b"GET /", b"GET /caf\xe9-"),
    lambda line: line[:40] + b"\0" * 24 + line[64:],
    lambda line: line.replace(b'"GET /', b'"').replace(b" HTTP/", b"/"),
    lambda line: b"\n",
    lambda line: b"    at castle.archive.Records.find(Records.java:1926)\n",
    lambda line: b"[error] 7#7: *1207 upstream timed out (110: Connection timed out)\n",
)
