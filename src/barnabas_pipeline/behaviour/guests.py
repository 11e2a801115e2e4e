"""Simulates the fictional site's visitors and their choice of pages."""

from __future__ import annotations

import random
from itertools import accumulate

from barnabas_pipeline.behaviour import site

_REMEMBERED = 4_000
_RETURNING_SHARE = 0.3
_IPV6_SHARE = 0.18


class Guests:
    """Generates people with browsers; some of these people return."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        self._known: list[tuple[str, str]] = []

    def next(self) -> tuple[str, str, bool]:
        """Return an address, a user agent, and whether the browser has cached the site's assets."""
        if self._known and self._random.random() < _RETURNING_SHARE:
            return (*self._random.choice(self._known), True)
        agents, weights = site.BROWSERS
        guest = (self.address(), self._random.choices(agents, weights)[0])
        if len(self._known) < _REMEMBERED:
            self._known.append(guest)
        else:
            self._known[self._random.randrange(_REMEMBERED)] = guest
        return (*guest, False)

    def address(self) -> str:
        """Return an address, most likely a new one."""
        number = self._random.getrandbits(48)
        if self._random.random() < _IPV6_SHARE:
            return f"2001:db8:{number >> 32:x}:{number >> 16 & 0xFFFF:x}::{number & 0xFFFF:x}"
        return f"198.{18 + (number >> 16 & 1)}.{number >> 8 & 0xFF}.{number & 0xFF}"


class Pages:
    """Chooses pages of the site. Most guests read the same few pages."""

    def __init__(self, source: random.Random) -> None:
        self._random = source
        popular = ["/", "/visit/tickets", "/visit/opening-hours", "/journal/on-messengers"]
        others = [*site.LONE_PAGES, *site.SECTIONS]
        for section, names in site.SECTIONS.items():
            others.extend(f"{section}/{name}" for name in names)
        others = [page for page in others if page not in popular]
        source.shuffle(others)
        self._all = popular + others
        self._weights = list(accumulate(1 / (rank + 1.6) for rank in range(len(self._all))))
        self._sizes: dict[str, int] = {}

    def any(self) -> str:
        """Return a random page, for a robot."""
        return self._random.choice(self._all)

    def popular(self) -> str:
        """Return a random page, weighted by popularity."""
        return self._random.choices(self._all, cum_weights=self._weights)[0]

    def beside(self, page: str) -> str:
        """Return another page in the section of this page, or a popular page if this page is in no
        section.
        """
        section = "/" + page.split("/")[1]
        names = site.SECTIONS.get(section)
        return f"{section}/{self._random.choice(names)}" if names else self.popular()

    def size_bytes(self, path: str) -> int:
        """Return the response size for this path, which never changes."""
        path = path.partition("?")[0]
        if path not in self._sizes:
            largest = 180_000 if path.startswith("/pictures") else 40_000
            self._sizes[path] = self._random.randrange(2_000, largest)
        return self._sizes[path]
