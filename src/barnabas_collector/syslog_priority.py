"""Facility and severity of a syslog message: the number in its angle brackets (RFC 5424, 6.2.1, and
RFC 3164, 4.1.1). Pure.
"""

from __future__ import annotations

import re
from typing import Final

# fmt: off
FACILITIES: Final = (
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv",
    "ftp", "ntp", "audit", "alert", "clock",
    "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
)
# fmt: on
SEVERITIES: Final = ("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")

_PRIORITY: Final = re.compile(rb"<(0|[1-9][0-9]{0,2})>")


def priority(text: bytes) -> tuple[str, str] | None:
    """The names of facility and severity; None if the message has no valid number."""
    match = _PRIORITY.match(text)
    if match is None:
        return None
    facility, severity = divmod(int(match[1]), len(SEVERITIES))
    if facility >= len(FACILITIES):
        return None
    return FACILITIES[facility], SEVERITIES[severity]
