"""Tracks how many file descriptors are still available, and logs shortages.

A log opens its files when it is used, so if connections use up all descriptors, the broker can
neither read nor write. For this reason, an eighth of the limit is reserved. While fewer descriptors
are left, connections wait in the kernel's backlog. Running out of descriptors is not a disk
failure. Operations that need a descriptor are rejected or deferred, and the shortage is logged
once.
"""

from __future__ import annotations

import logging
from pathlib import Path

from barnabas.clock import Clock
from barnabas.named_tuple import NamedTuple

_log = logging.getLogger(__name__)

_LISTING, _FALLBACK = Path("/proc/self/fd"), Path("/dev/fd")
_ENOUGH = 1_000_000
_MACOS_LIMIT = 10_240  # macOS's OPEN_MAX
_PLENTY = 1 << 30  # used if the limit is unknown or absent
_SMALLEST_RESERVE = 16
_AN_EPISODE_MS = 60_000  # a later error starts a new episode


class Descriptors(NamedTuple):
    """The limit on a process's file descriptors, and how many descriptors are left."""

    limit: int
    left: int

    @property
    def reserve(self) -> int:
        """Return the number of descriptors that are reserved for files."""
        return max(self.limit // 8, _SMALLEST_RESERVE)

    @property
    def are_short(self) -> bool:
        return self.left < self.reserve


PLENTY = Descriptors(_PLENTY, _PLENTY)


def plenty() -> Descriptors:
    """Return an instance for a process that can never run out of descriptors."""
    return PLENTY


def of_this_process(listing: Path = _LISTING) -> Descriptors:
    """Count the open descriptors of this process, which Linux lists in the directory `listing`."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return PLENTY
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return PLENTY
    try:
        return Descriptors(limit, max(0, limit - _count_open(listing)))
    except FileNotFoundError:
        return PLENTY
    except OSError:
        return Descriptors(limit, 0)


def allow_many() -> None:
    """Raise the limit as far as possible, because every connection and every log in use needs a
    file descriptor.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_limited = hard != resource.RLIM_INFINITY
    # If there is no hard limit, use a number that is large enough, because some systems do not
    # accept an unlimited value.
    for wanted in (hard,) if is_limited else (max(soft, _ENOUGH), max(soft, _MACOS_LIMIT)):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):  # macOS reports no limit but rejects higher values
            continue
        return


def _count_open(listing: Path) -> int:
    # Since Linux 6.2, the number of open descriptors is given as the size of this directory.
    if listing.is_dir():
        return listing.stat().st_size or len(list(listing.iterdir()))
    return len(list(_FALLBACK.iterdir()))


class Shortage:
    """Logs a shortage of descriptors once instead of for every call that fails."""

    __slots__ = ("_clock", "_met_at_ms")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._met_at_ms = -_AN_EPISODE_MS

    def on_error(self, error: OSError) -> None:
        """Log a call that failed because there was no free descriptor."""
        now_ms = self._clock.monotonic_ms()
        # Log only the first error of each episode.
        level = logging.ERROR if now_ms - self._met_at_ms >= _AN_EPISODE_MS else logging.DEBUG
        self._met_at_ms = now_ms
        _log.log(
            level,
            "%s; operations that need a file are rejected or delayed until some are closed. "
            "Raise the limit (ulimit -n) or allow fewer connections (max.connections)",
            error,
        )
