"""Converts broker configs that a program passes, and defines the defaults of embedded brokers.

By default, only warnings and errors are logged. Loggers are shared by the whole process, so only
the broker's own are changed, and only if no level is set. For example,
`logging.getLogger("barnabas").setLevel("INFO")` before the start takes precedence. If several
brokers run at the same time, the first one sets and restores the levels, so the others may log more
once it has stopped.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Final

from barnabas.errors import ConfigError

TIMEOUT_S: Final = 10.0
"""The default timeout of a test's waits."""

LOGGERS: Final = tuple(
    f"barnabas.{part}"
    for part in ("broker", "cluster", "controller", "coordinator", "net", "replication", "storage")
)

Setting = str | int | float | bool | os.PathLike[str]
"""The types that are accepted for the value of a broker config."""


def texts(config: Mapping[str, Setting] | None) -> dict[str, str]:
    """Return configs as text, as in a properties file. Raises ConfigError for a value that cannot
    be written in such a file.
    """
    return {name: _text(name, value) for name, value in (config or {}).items()}


def defaults_for_tests(brokers: int) -> dict[str, str]:
    """Return defaults that differ from Kafka's, because a test should not wait for other members of
    a group, has few groups and transactions (fifty partitions for each take twenty milliseconds),
    and should not wait a second when a follower asks its leader slightly too early.
    """
    return {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": str(brokers),
        "transaction.state.log.num.partitions": str(brokers),
        "replica.fetch.backoff.ms": "50",
    }


def _text(name: str, value: Setting) -> str:
    # Check bool first, because a bool is an int in Python.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise ConfigError(f"{name} must be text, a number, a path, True or False, not {value!r}")


class QuietLog:
    """Sets these loggers to WARNING between `begin` and `end`."""

    def __init__(self) -> None:
        self._changed: list[logging.Logger] = []

    def begin(self) -> None:
        # Keep a level chosen by the program.
        if logging.getLogger("barnabas").level != logging.NOTSET:
            return
        for logger in map(logging.getLogger, LOGGERS):
            if logger.level == logging.NOTSET:
                logger.setLevel(logging.WARNING)
                self._changed.append(logger)

    def end(self) -> None:
        """Restore the levels, except levels that the program has changed in the meantime."""
        while self._changed:
            logger = self._changed.pop()
            if logger.level == logging.WARNING:
                logger.setLevel(logging.NOTSET)
