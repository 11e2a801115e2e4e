"""Reads and changes the log levels of a running broker (KIP-412).

The loggers are Python's `root` and `barnabas` loggers and the descendants of `barnabas`. The levels
have the same names as in Kafka, and a change is lost when the process ends, also as in Kafka.
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
    """Return the names of the broker's existing loggers, including `root`."""
    known = logging.root.manager.loggerDict
    return [ROOT, *sorted(name for name in known if name.split(".")[0] == _OURS)]


def effective_levels() -> dict[str, str]:
    """Return the effective level of each logger, whether it is set on the logger or inherited."""
    return {name: _level(_logger(name).getEffectiveLevel()) for name in logger_names()}


def own_levels() -> dict[str, str]:
    """Return the level of each logger whose level is set on the logger itself."""
    levels = {name: _logger(name).level for name in logger_names()}
    return {name: _level(level) for name, level in levels.items() if level}


def level_edit(changes: Sequence[Change]) -> Edit:
    """Return an edit of log levels for IncrementalAlterConfigs. Only SET and DELETE are allowed.

    The edit raises InvalidConfig if a logger or level is unknown. It raises InvalidRequest for any
    other operation, and for an attempt to delete the root logger's level.
    """

    def edit(current: Settings) -> dict[str, str]:
        wanted = dict(current)
        names = set(logger_names())
        for name, operation, value in changes:
            if operation not in (Operation.SET, Operation.DELETE):
                raise InvalidRequest(f"{name}: a log level can only be set (0) or deleted (1)")
            # Python creates a logger for any name, so it would silently accept a mistyped one.
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
                    f"Cannot set the log level of {name} to {value}: it must be one of "
                    f"{', '.join(LEVELS)}"
                )
            else:
                wanted[name] = value
        return wanted

    return edit


def set_levels(wanted: Settings) -> None:
    """Set the level of each logger, or reset the logger so that it inherits its level."""
    current = own_levels()
    for name in current.keys() - wanted.keys():
        _logger(name).setLevel(logging.NOTSET)
    for name, level in wanted.items():
        if current.get(name) != level:
            _logger(name).setLevel(LEVELS[level])


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _level(number: int) -> str:
    """Return the name of this level, or of the next higher level if this one has no name."""
    return next((name for name, level in LEVELS.items() if number <= level), "FATAL")
