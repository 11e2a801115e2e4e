"""Finds the client that an event refers to, from the names in the event's text. Pure.

An event has no field for the client. Brokers put the client's id or host at a fixed place in the
text and the cause at the end, so a name chosen by one client cannot be mistaken for the name of
another.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from barnabas.console.client_shapes import ClientEvent
from barnabas.console.event_book import EventBook
from barnabas.console.shapes import EventRow
from barnabas.security.acl_host import java_host

KINDS: Final = ("access-denied", "authentication-failed", "connection-refused", "throttle")
_MOST: Final = 2_000
_LONGEST_NAME: Final = 100
_THROTTLED = re.compile(
    r"(?:user .+?, )?client-id (?P<client>.+) is (?:throttled for \d+ ms|no longer throttled by "
    r"[a-z_]+ after [\d,]+ throttled requests? in \d+ ms, the longest for \d+ ms)"
)
_ADDRESS = re.compile(r"address (?P<host>\S+) is throttled for \d+ ms")
_DENIED = re.compile(r".* from host (?P<host>\S+) for \w+")
_FROM = re.compile(
    r"(?:connection refused|failed authentication|TLS handshake failed) from (?P<host>\S+):\d+"
)
_DETAILS = re.compile(r" \[listener .*?, client-id (?P<client>.+)\]")


class Named(NamedTuple):
    """The names of a client in an event. A name that the event does not give is ""."""

    client_id: str = ""
    host: str = ""


def named_in(row: EventRow) -> Named:
    """Return the client that an event names."""
    front, found, rest = row["text"].rpartition(f": {row['cause']}")
    if not found:
        return Named()
    if row["kind"] == "throttle":
        client, address = _THROTTLED.fullmatch(front), _ADDRESS.fullmatch(front)
        return Named(client["client"] if client else "", address["host"] if address else "")
    place = (_DENIED if row["kind"] == "access-denied" else _FROM).fullmatch(front)
    if place is None:
        return Named()
    details = _DETAILS.match(rest)
    return Named(details["client"] if details else "", plain_host(place["host"]))


def plain_host(host: str) -> str:
    """Normalise an address, because brokers put a slash before the address of a group member."""
    return java_host(host.removeprefix("/"))


class ClientEvents:
    """Holds the recent events about clients, indexed by the names in the events."""

    def __init__(self, book: EventBook) -> None:
        self.last = book.last
        """The number of the newest event in the index. The index must be rebuilt when a newer event
        arrives.
        """
        self.rows = book.of_kinds(KINDS, _MOST)
        self._by_name: dict[Named, list[EventRow]] = {}
        for row in self.rows:
            name = named_in(row)
            if any(name):
                self._by_name.setdefault(name, []).append(row)

    def of(self, client_id: str, host: str) -> tuple[int, ClientEvent | None]:
        """Return the number of events that name a client or its host, and the latest of these
        events.
        """
        host = plain_host(host)
        names = [Named("", host)]
        # Brokers cut long names and escape odd ones. A name that was changed in this way may be
        # equal to another client's name.
        if client_id and len(client_id) < _LONGEST_NAME and "\\" not in client_id:
            names += [Named(client_id, ""), Named(client_id, host)]
        found = [(name, row) for name in names for row in self._by_name.get(name, ())]
        if not found:
            return 0, None
        name, row = max(found, key=lambda one: (one[1]["at"], one[1]["sequence"]))
        last = ClientEvent(
            at=row["at"], kind=row["kind"], text=row["text"], is_by_host=not name.client_id
        )
        return len(found), last
