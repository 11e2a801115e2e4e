"""Reads and changes the log levels of a running broker (KIP-412).

The loggers are Python's: `root`, `barnabas` and its descendants. The levels are named as in Kafka.
A change lasts until the process ends, as in Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from barnabas.broker.configs.config_edit import Change, Edit, Operation, Settings
from barnabas.errors import InvalidConfig, InvalidRequest

ROOT: Final = "root"
_OURS: Final = "barnabas"

LEVELS: Final[Mapping[str, int]] = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
"""Maps Kafka's level names to Python's numeric levels."""


def logger_names() -> list[str]:
    """Return `root` and the broker's existing loggers."""
    known = logging.root.manager.loggerDict
    return [ROOT, *sorted(name for name in known if name.split(".")[0] == _OURS)]


def effective_levels() -> dict[str, str]:
    """Return the level of each logger, whether set or inherited."""
    return {name: _level(_logger(name).getEffectiveLevel()) for name in logger_names()}


def own_levels() -> dict[str, str]:
    """Return the level of each logger that does not inherit it."""
    levels = {name: _logger(name).level for name in logger_names()}
    return {name: _level(level) for name, level in levels.items() if level}


def level_edit(changes: Sequence[Change]) -> Edit:
    """Return an edit of log levels for IncrementalAlterConfigs; only SET and DELETE are valid.

    The edit raises InvalidConfig for an unknown logger or level, and InvalidRequest for any other
    operation or for deleting the root logger's level.
    """

    def edit(current: Settings) -> dict[str, str]:
        wanted = dict(current)
        names = set(logger_names())
        for name, operation, value in changes:
            if operation not in (Operation.SET, Operation.DELETE):
                raise InvalidRequest(f"{name}: a log level can only be set (0) or deleted (1)")
            # Python creates a logger for any name, so a mistyped name would be accepted
            # silently.
            if name not in names:
                raise InvalidConfig(f"Logger {name} does not exist!")
            if operation == Operation.DELETE:
                if name == ROOT:
                    raise InvalidRequest(
                        "Removing the log level of the root logger is not allowed; set another "
                        "level"
                    )
                wanted.pop(name, None)
            elif value is None or value not in LEVELS:
                raise InvalidConfig(
                    f"Cannot set the log level of {name} to {value}: must be one of "
                    f"{', '.join(LEVELS)}"
                )
            else:
                wanted[name] = value
        return wanted

    return edit


def set_levels(wanted: Settings) -> None:
    """Set each logger's level, or reset it to inherit its level."""
    current = own_levels()
    for name in current.keys() - wanted.keys():
        _logger(name).setLevel(logging.NOTSET)
    for name, level in wanted.items():
        if current.get(name) != level:
            _logger(name).setLevel(LEVELS[level])


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _level(number: int) -> str:
    """Return the name of the level, or of the next higher level that has a name."""
    return next((name for name, level in LEVELS.items() if number <= level), "FATAL")
