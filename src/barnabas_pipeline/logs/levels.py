"""Normalises the levels of log lines to Log4j's names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

LEVELS: Final = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
"""All levels, worst first."""

_APACHE_TRACES: Final = tuple(f"TRACE{number}" for number in range(1, 9))
_NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "FATAL": ("FATAL", "F", "CRITICAL", "CRIT", "C", "ALERT", "EMERG", "EMERGENCY", "PANIC"),
        "ERROR": ("ERROR", "E", "ERR", "SEVERE", "FAILURE"),
        "WARN": ("WARN", "W", "WARNING"),
        "INFO": ("INFO", "I", "INFORMATION", "INFORMATIONAL", "NOTICE", "N", "CONFIG", "AUDIT"),
        "DEBUG": ("DEBUG", "D", "FINE", "VERBOSE", "V"),
        "TRACE": ("TRACE", "T", "FINER", "FINEST", *_APACHE_TRACES),
    }
)
NAMES: Final = tuple(name for names in _NAMES.values() for name in names)
"""All names that levels have in lines, in capitals."""
_BY_NAME: Final = {name: level for level, names in _NAMES.items() for name in names}
# RFC 5424, table 2: emergency, alert, critical, error, warning, notice, informational, debug.
_BY_SEVERITY: Final = dict(
    enumerate(("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG"))
)


def level_of(name: pl.Expr) -> pl.Expr:
    """Return the level that a line's `name` stands for, or null if it is not a level."""
    return name.str.to_uppercase().replace_strict(_BY_NAME, default=None, return_dtype=pl.String)


def level_of_priority(priority: pl.Expr) -> pl.Expr:
    """Return the level of a syslog message, given by the number in its first angle brackets."""
    severity = priority.cast(pl.Int32, strict=False) % 8
    return severity.replace_strict(_BY_SEVERITY, default=None, return_dtype=pl.String)
