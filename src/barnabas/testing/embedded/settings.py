"""Broker configs as a program writes them, and the defaults of embedded brokers.

One of these is a quiet log: warnings and errors, nothing below. Loggers are the whole process's, so
only those of the broker's parts are touched, and only where no level is set:
`logging.getLogger("barnabas").setLevel("INFO")` before the start has the last word. The levels are
taken back by the broker that set them. Of several brokers side by side that is the first, and the
others may be heard for as long as they outlive it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Final

from barnabas.errors import ConfigError

TIMEOUT_S: Final = 10.0
"""How long a wait of a test lasts unless it says otherwise."""

LOGGERS: Final = tuple(
    f"barnabas.{part}"
    for part in ("broker", "cluster", "controller", "coordinator", "net", "replication", "storage")
)

Setting = str | int | float | bool | os.PathLike[str]
"""A broker config's value as a program writes it."""


def texts(config: Mapping[str, Setting] | None) -> dict[str, str]:
    """Configs as in a properties file. Raises ConfigError for a value that no file could have."""
    return {name: _text(name, value) for name, value in (config or {}).items()}


def defaults_for_tests(brokers: int) -> dict[str, str]:
    """Defaults that differ from Kafka's: a test does not wait for a group's other members, has few
    groups and transactions (fifty partitions for each cost twenty milliseconds), and does not wait
    a second because a follower asked its leader a moment too early."""
    return {
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": str(brokers),
        "transaction.state.log.num.partitions": str(brokers),
        "replica.fetch.backoff.ms": "50",
    }


def _text(name: str, value: Setting) -> str:
    # First, since a bool is an int to Python.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise ConfigError(f"{name}: {value!r} is not a text, a number, a path, True or False")


class QuietLog:
    """Raises the level of these loggers to WARNING from `begin` to `end`."""

    def __init__(self) -> None:
        self._changed: list[logging.Logger] = []

    def begin(self) -> None:
        # The program has chosen a level, which holds.
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
