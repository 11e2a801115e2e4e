"""Adds an event for each failed authentication, by SASL or by a TLS certificate (IN-1).

Anyone who reaches the listener can fail, as often as they like and under any name, so the number of
events is limited for each address and for all of them together (`broker.event_limit`); a counter
includes every failure.

An event contains the name of the user only if there is one of that name, because any other name can
be a password that was entered in the wrong place. So the events, unlike the response to the client,
show which users exist; but whoever may read them may also describe the users of SCRAM. The cause is
the same for an unknown user as for a wrong password.
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
"""The maximum number of events per minute, for all addresses together.

It is lower than that for denied access, because these clients are strangers.
"""

_LONGEST_NAME = 100
_LONGEST_REASON = 500


class FailedLogin(NamedTuple):
    """A client that could not authenticate; a field that is not known is empty."""

    listener: str
    address: Address
    reason: str
    """The reason for the log, which can say more than the response to the client."""
    is_tls: bool = False
    """Whether the TLS handshake failed; otherwise, it is SASL."""
    mechanism: str = ""
    """The SASL mechanism; empty if the client has not chosen one."""
    user: str = ""
    """The existing user that the client claimed to be, which nothing has proved."""
    client_id: str = ""


class FailedLogins:
    """Adds the events of one broker, within these limits."""

    __slots__ = ("_events", "_limit")

    def __init__(self, events: EventLog, clock: Clock) -> None:
        self._events = events
        self._limit = EventLimit(
            clock, self._report_others, per_source=EVENTS_PER_ADDRESS, total=EVENTS
        )

    def add(self, login: FailedLogin) -> None:
        """Add the event of a failure, if it is due."""
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
