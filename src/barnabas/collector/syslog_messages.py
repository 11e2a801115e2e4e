"""Syslog's frames as messages for an inbox: value, key and headers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from barnabas.collector.headers import (
    HOST,
    SYSLOG_CUT,
    SYSLOG_FACILITY,
    SYSLOG_FROM,
    SYSLOG_SEVERITY,
)
from barnabas.collector.inbox import Message
from barnabas.collector.syslog_framing import Frame
from barnabas.collector.syslog_priority import priority
from barnabas.records.record import Headers


class SyslogMessages:
    """Of one sender. Its address is the key, so that one partition has its messages in order."""

    def __init__(self, peer: str, host: str) -> None:
        self._key = peer.encode()
        self._headers: Headers = ((HOST, host.encode()), (SYSLOG_FROM, self._key))

    def of(self, frames: Iterable[Frame]) -> Iterator[Message]:
        for text, size_bytes in frames:
            headers = list(self._headers)
            if (named := priority(text)) is not None:
                headers.append((SYSLOG_FACILITY, named[0].encode()))
                headers.append((SYSLOG_SEVERITY, named[1].encode()))
            if size_bytes > len(text):
                headers.append((SYSLOG_CUT, b"%d" % size_bytes))
            yield Message(self._key, text, headers, size_bytes)
