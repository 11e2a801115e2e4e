"""Adds an event for each failed authentication, whether by SASL or by TLS certificate (IN-1).

Anyone who can reach the listener can fail to authenticate any number of times and under any name.
The number of events is therefore limited, both per address and in total (`broker.event_limit`). A
counter includes every failure, even if no event is added.

An event names the user only if that user exists, because any other name may be a password typed
into the wrong field. The events therefore reveal which users exist, while the response to the
client does not. This is acceptable because anyone who is allowed to read the events may also
describe SCRAM users. The cause reported for an unknown user is the same as for a wrong password.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.event_limit import EventLimit
from barnabas.counted import counted
from barnabas.events import Event
from barnabas.named_tuple import NamedTuple
from barnabas.printable import printable_within

if TYPE_CHECKING:
    from barnabas.clock import Clock
    from barnabas.events import EventLog
    from barnabas.net.connection import Address

_log = logging.getLogger(__name__)

KIND: Final = "authentication-failed"
EVENTS_PER_ADDRESS: Final = 10
EVENTS: Final = 50
"""The maximum number of events per minute, across all addresses.

It is lower than the limit for denied access, because these clients are not known to the broker.
"""

_LONGEST_NAME = 100
_LONGEST_REASON = 500


class FailedLogin(NamedTuple):
    """A client that failed to authenticate. Fields that are not known are empty."""

    listener: str
    address: Address
    reason: str
    """The reason to log. It may be more specific than the reason in the response to the client."""
    is_tls: bool = False
    """True if the TLS handshake failed, False if SASL authentication failed."""
    mechanism: str = ""
    """The SASL mechanism, or an empty string if the client has not chosen one."""
    user: str = ""
    """The existing user whose name the client gave. The client has not proved that it is this user.
    """
    client_id: str = ""


class FailedLogins:
    """Adds the events of one broker within these limits."""

    __slots__ = ("_events", "_limit")

    def __init__(self, events: EventLog, clock: Clock) -> None:
        self._events = events
        self._limit = EventLimit(
            clock, self._report_others, per_source=EVENTS_PER_ADDRESS, total=EVENTS
        )

    def add(self, login: FailedLogin) -> None:
        """Add an event for a failed authentication if the limits allow it."""
        host = login.address[0]
        reason = printable_within(login.reason, _LONGEST_REASON)
        user = printable_within(login.user, _LONGEST_NAME)
        more = self._limit.count((login.listener, host, login.mechanism, user, reason), host)
        if more is not None:
            self._events.add(_event(login, user, reason, more), _log)

    def _report_others(self, left_out: int) -> None:
        text = f"{counted(left_out, 'further failed authentication')} without an event of their own"
        cause = "at most one event per minute reports the same failure, and only some others"
        self._events.add(Event(KIND, text, cause), _log)


def _event(login: FailedLogin, user: str, reason: str, more: int) -> Event:
    host, port = login.address
    what = "TLS handshake failed" if login.is_tls else "failed authentication"
    details = [f"listener {login.listener}"]
    if login.mechanism:
        details.append(f"mechanism {printable_within(login.mechanism, _LONGEST_NAME)}")
    if user:
        details.append(f"user {user}")
    if login.client_id:
        details.append(f"client-id {printable_within(login.client_id, _LONGEST_NAME)}")
    text = f"{what} from {host}:{port}: {reason} [{', '.join(details)}]"
    if more:
        text += f" ({counted(more, 'more failure')} since the last event)"
    return Event(KIND, text, reason, is_harmless=False, is_warning=login.is_tls)
