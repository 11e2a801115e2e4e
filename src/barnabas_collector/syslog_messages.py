"""Converts syslog frames to bundles for an inbox, with values, keys and headers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from barnabas.records.record import Headers
from barnabas_collector.bundle import Bundle, Origin
from barnabas_collector.headers import (
    HOST,
    SYSLOG_CUT,
    SYSLOG_FACILITY,
    SYSLOG_FROM,
    SYSLOG_SEVERITY,
)
from barnabas_collector.syslog_framing import Frame

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
    """Return the names of facility and severity for the number in angle brackets (RFC 5424, 6.2.1,
    and RFC 3164, 4.1.1), or None if the message contains no valid number."""
    match = _PRIORITY.match(text)
    if match is None:
        return None
    facility, severity = divmod(int(match[1]), len(SEVERITIES))
    if facility >= len(FACILITIES):
        return None
    return FACILITIES[facility], SEVERITIES[severity]


class SyslogMessages:
    """Bundles the messages of one sender.

    The sender's address is the key, so its messages stay in order in one partition.
    """

    def __init__(self, peer: str, host: str) -> None:
        self._peer = peer
        self._host = host

    def of(self, frames: Iterable[Frame]) -> Iterator[Bundle]:
        texts: list[bytes] = []
        of_texts: Origin | None = None
        for text, size_bytes in frames:
            origin = _origin(self._peer, self._host, priority(text))
            is_cut = size_bytes > len(text)
            if of_texts is not None and (origin is not of_texts or is_cut):
                yield Bundle(of_texts, texts)
                of_texts, texts = None, []
            if is_cut:
                cut = origin.with_header(SYSLOG_CUT, b"%d" % size_bytes)
                yield Bundle(cut, [text], size_bytes)
            else:
                of_texts = origin
                texts.append(text)
        if of_texts is not None:
            yield Bundle(of_texts, texts)


@lru_cache(4_096)
def _origin(peer: str, host: str, named: tuple[str, str] | None) -> Origin:
    headers: Headers = ((HOST, host.encode()), (SYSLOG_FROM, peer.encode()))
    if named is not None:
        names = (SYSLOG_FACILITY, SYSLOG_SEVERITY)
        headers = (*headers, *zip(names, (each.encode() for each in named), strict=True))
    return Origin(peer.encode(), headers)
