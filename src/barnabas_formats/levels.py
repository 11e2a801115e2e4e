"""Maps level names and numbers in log lines to Log4j's levels."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

LEVELS: Final = ("FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE")
"""All levels, the most severe first."""

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
"""All names of levels in lines, in capitals."""
# These names are levels in one or two formats but ordinary words elsewhere.
_OTHER_NAMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "FATAL": ("DPANIC", "FTL"),
        "ERROR": ("FAIL",),
        "WARN": ("WRN", "#"),  # Redis writes symbols
        "INFO": ("INF", "LOG", "NOTE", "SYSTEM", "SUCCESS", "*"),
        "DEBUG": (
            "DBG",
            "DBUG",
            *(f"DEBUG{n}" for n in range(1, 6)),
            *(f"D{n}" for n in range(1, 6)),
            "-",
        ),
        "TRACE": ("TRC", "TRCE", "."),
    }
)
BY_NAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        name: level
        for table in (_NAMES, _OTHER_NAMES)
        for level, names in table.items()
        for name in names
    }
)
"""Maps all `NAMES`, and also names that a format must list explicitly, to a level."""
BY_NUMBER: Final[Mapping[int, str]] = MappingProxyType(
    dict(zip(range(10, 70, 10), reversed(LEVELS), strict=True))
)
"""The numeric levels of pino and Bunyan."""
# RFC 5424, table 2: emergency, alert, critical, error, warning, notice, informational, debug.
BY_SEVERITY: Final[Mapping[int, str]] = MappingProxyType(
    dict(enumerate(("FATAL", "FATAL", "FATAL", "ERROR", "WARN", "INFO", "INFO", "DEBUG")))
)
"""Maps syslog's severities to levels."""
