"""What the pipeline should find in an access log, computed again in plain Python.

Shares no code with the pipeline: another pattern, another way to cut sessions, no Spark. Reads the
whole file into memory, so it is for tests only.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

LINE = re.compile(
    r"""(?P<client>\S+)\ (?P<ident>\S+)\ (?P<user>\S.*?)\ \[(?P<time>[^\]]+)\]
    \ "(?P<request>(?:\\.|[^"\\])*)"\ (?P<status>[1-5]\d\d)\ (?P<size>\d+|-)
    (?:\ "(?P<referrer>(?:\\.|[^"\\])*)"\ "(?P<agent>(?:\\.|[^"\\])*)")?""",
    re.VERBOSE,
)
REQUEST = re.compile(r"(?P<method>[A-Za-z][\w-]*) (?P<target>\S.*?)(?: HTTP/[\d.]+)?")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
NO_PAGES = re.compile(
    r".*\.(css|js|mjs|map|json|xml|rss|atom|txt|ico|png|jpg|jpeg|gif|svg|webp|avif|bmp|woff|woff2|ttf"
    r"|otf|eot|mp3|mp4|webm|ogg|wav|avi|mov|pdf|zip|gz|tgz|bz2|xz|7z|rar|tar|exe|dmg|deb|rpm|iso)",
    re.IGNORECASE,
)


class Hit(NamedTuple):
    client: str
    agent: str | None
    time: datetime
    method: str
    path: str
    status: int
    size_bytes: int
    referrer: str | None
    number: int  # of the line, from 0

    @property
    def is_page(self) -> bool:
        good = 200 <= self.status < 300 or self.status == 304
        return self.method == "GET" and good and not NO_PAGES.fullmatch(self.path)


class Session(NamedTuple):
    client: str
    agent: str | None
    start: datetime
    end: datetime
    hits: int
    pages: int
    size_bytes: int
    entry: str | None
    exit: str | None

    @property
    def is_bounce(self) -> bool:
        return self.pages == 1


class Found(NamedTuple):
    lines: int
    hits: list[Hit]
    bad: list[bytes]
    sessions: list[Session]

    @property
    def visitors(self) -> int:
        return len({(hit.client, hit.agent) for hit in self.hits})

    @property
    def bounces(self) -> int:
        return sum(session.is_bounce for session in self.sessions)

    @property
    def status_classes(self) -> Counter[str]:
        return Counter(f"{hit.status // 100}xx" for hit in self.hits)

    @property
    def page_views(self) -> Counter[str]:
        return Counter(hit.path for hit in self.hits if hit.is_page)

    @property
    def referrer_hosts(self) -> Counter[str]:
        hosts = (urlsplit(hit.referrer).hostname for hit in self.hits if hit.referrer)
        return Counter(host.removeprefix("www.") for host in hosts if host)

    def open(self) -> int:
        newest = max(hit.time for hit in self.hits)
        return sum(newest - session.end < timedelta(minutes=30) for session in self.sessions)


def compute(path: Path) -> Found:
    """Everything that the tests compare."""
    content = path.read_bytes()
    lines = content.split(b"\n")
    if not lines[-1]:
        lines.pop()
    hits, bad = [], []
    for number, line in enumerate(lines):
        hit = _hit(line, number)
        if hit is None:
            bad.append(line)
        else:
            hits.append(hit)
    return Found(len(lines), hits, bad, _sessions(hits))


def _hit(line: bytes, number: int) -> Hit | None:
    try:
        text = line.decode("utf-8", "backslashreplace").rstrip("\r")
        match = LINE.fullmatch(text)
        if match is None or CONTROL.search(text):
            return None
        time = datetime.strptime(match["time"], "%d/%b/%Y:%H:%M:%S %z")
    except ValueError:
        return None
    request = REQUEST.fullmatch(match["request"])
    if request is None and int(match["status"]) < 400:
        return None
    target = re.sub(r"^[A-Za-z][\w+.-]*://[^/?#]*", "", request["target"]) if request else ""
    return Hit(
        client=match["client"],
        agent=_said(match["agent"]),
        time=time,
        method=request["method"] if request else "",
        path=(target.split("?")[0] or "/") if request else "",
        status=int(match["status"]),
        size_bytes=0 if match["size"] == "-" else int(match["size"]),
        referrer=_said(match["referrer"]),
        number=number,
    )


def _said(text: str | None) -> str | None:
    if text in (None, "", "-"):
        return None
    return re.sub(r'\\(["\\])', r"\1", text)


def _sessions(hits: list[Hit]) -> list[Session]:
    by_visitor = defaultdict(list)
    for hit in hits:
        by_visitor[hit.client, hit.agent].append(hit)
    found = []
    for visits in by_visitor.values():
        visits.sort(key=lambda hit: (hit.time, hit.number))
        current: list[Hit] = []
        for hit in visits:
            if current and hit.time - current[-1].time >= timedelta(minutes=30):
                found.append(_session(current))
                current = []
            current.append(hit)
        found.append(_session(current))
    return found


def _session(hits: list[Hit]) -> Session:
    pages = [hit.path for hit in hits if hit.is_page]
    return Session(
        client=hits[0].client,
        agent=hits[0].agent,
        start=hits[0].time,
        end=hits[-1].time,
        hits=len(hits),
        pages=len(pages),
        size_bytes=sum(hit.size_bytes for hit in hits),
        entry=pages[0] if pages else None,
        exit=pages[-1] if pages else None,
    )
