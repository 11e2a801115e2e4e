"""Limits the log lines written about clients, so that no client can flood the log.

A misconfigured client reconnects several times a second. A hostile client reconnects as fast as it
can, with a different error each time. Each reason is therefore logged only once per address and
minute. The number of reasons per address and the total number of lines (a few hundred) are also
limited. Suppressed lines are counted.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.counted import counted
from barnabas.printable import printable

if TYPE_CHECKING:
    from barnabas.clock import Clock

LINES_PER_ADDRESS: Final = 10
LINES: Final = 300
"""The maximum number of lines per minute, across all addresses."""

_MINUTE_MS = 60_000


class Complaints:
    """Logs the client errors of one broker within these limits."""

    __slots__ = ("_began_at_ms", "_clock", "_count", "_left_out", "_log", "_said")

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._began_at_ms = 0
        self._count = 0  # lines logged this minute
        self._left_out = 0  # lines suppressed this minute
        self._said: dict[str, set[str]] = {}  # by address; at most LINES addresses

    def report(
        self,
        address: tuple[str, int],
        what: str,
        reason: object,
        *,
        level: int = logging.WARNING,
        bug: Exception | None = None,
    ) -> None:
        """Log an occurrence on a connection from `address`, with the reason.

        If `bug` is given, it is an internal error and is logged with its traceback.
        """
        # A line that the log level suppresses must not count against the limits.
        if not self._log.isEnabledFor(level):
            return
        # The reason may contain untrusted data.
        text = printable(str(reason))
        if self._is_wanted(address[0], f"{what}{text}"):
            self._log.log(level, "%s from %s:%d: %s", what, *address, text, exc_info=bug)

    def _is_wanted(self, host: str, line: str) -> bool:
        now_ms = self._clock.monotonic_ms()
        if not self._said or now_ms - self._began_at_ms >= _MINUTE_MS:
            self._begin(now_ms)
        said = self._said.get(host)
        if said is not None and line in said:
            return False  # already logged this minute
        if self._count >= LINES or (said is not None and len(said) >= LINES_PER_ADDRESS):
            self._left_out += 1
            return False
        self._count += 1
        self._said.setdefault(host, set()).add(line)
        return True

    def _begin(self, now_ms: int) -> None:
        """Start a new minute, and log how many lines were suppressed in the previous minute."""
        left_out, self._left_out = self._left_out, 0
        self._began_at_ms, self._count = now_ms, 0
        self._said.clear()
        if left_out:
            self._log.warning(
                "suppressed %s about connections in the last minute",
                counted(left_out, "further message"),
            )
