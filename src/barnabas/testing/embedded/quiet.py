"""The log of embedded brokers: warnings and errors, nothing below.

Loggers are the whole process's, so only those of the broker's parts are touched, and only where
no level is set: `logging.getLogger("barnabas").setLevel("INFO")` before the start has the last
word. The levels are taken back by the broker that set them. Of several brokers side by side
that is the first, and the others may be heard for as long as they outlive it.
"""

from __future__ import annotations

import logging
from typing import Final

LOGGERS: Final = tuple(
    f"barnabas.{part}"
    for part in ("broker", "cluster", "controller", "coordinator", "net", "replication", "storage")
)


class QuietLog:
    """Raises the level of these loggers to WARNING from `begin` to `end`."""

    def __init__(self) -> None:
        self._changed: list[logging.Logger] = []

    def begin(self) -> None:
        if logging.getLogger("barnabas").level != logging.NOTSET:
            return
        for logger in map(logging.getLogger, LOGGERS):
            if logger.level == logging.NOTSET:
                logger.setLevel(logging.WARNING)
                self._changed.append(logger)

    def end(self) -> None:
        """Take the levels back, except one that the program changed meanwhile."""
        while self._changed:
            logger = self._changed.pop()
            if logger.level == logging.WARNING:
                logger.setLevel(logging.NOTSET)
