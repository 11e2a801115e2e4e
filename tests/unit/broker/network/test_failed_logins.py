"""Events of failed authentications: what they say, and their limits (IN-1)."""

from __future__ import annotations

from barnabas.broker.network.failed_logins import (
    EVENTS,
    EVENTS_PER_ADDRESS,
    FailedLogin,
    FailedLogins,
)
from barnabas.events import Event, EventLog
from barnabas.metrics import Registry
from tests.kit.set_clock import SetClock

WRONG = "Authentication failed: Invalid username or password"
ALICE = FailedLogin(
    "IN", ("10.0.0.7", 5123), WRONG, mechanism="PLAIN", user="alice", client_id="web"
)


class Failing:
    def __init__(self) -> None:
        self.clock = SetClock()
        self.events = EventLog(self.clock.wall_ms, Registry())
        self.failed = FailedLogins(self.events, self.clock)

    def all(self) -> list[Event]:
        return self.events.after(0, 10_000)


def test_in_1_the_event_says_who_failed_and_why() -> None:
    failing = Failing()
    failing.failed.add(ALICE)
    (event,) = failing.all()
    assert event.text == (
        f"failed authentication from 10.0.0.7:5123: {WRONG} "
        "[listener IN, mechanism PLAIN, user alice, client-id web]"
    )
    assert (event.kind, event.cause, event.severity) == ("authentication-failed", WRONG, "INFO")


def test_in_1_a_failed_handshake_is_a_warning() -> None:
    failing = Failing()
    reason = "its certificate has expired: renew it"
    failing.failed.add(FailedLogin("TLS", ("10.0.0.7", 5123), reason, is_tls=True))
    (event,) = failing.all()
    assert event.text == f"TLS handshake failed from 10.0.0.7:5123: {reason} [listener TLS]"
    assert (event.cause, event.severity) == (reason, "WARNING")


def test_in_1_the_same_failure_has_one_event_a_minute() -> None:
    """IN-1: from whichever port, and whatever the client calls itself."""
    failing = Failing()
    for port in range(5):
        failing.failed.add(ALICE._replace(address=("10.0.0.7", port), client_id=f"c{port}"))
    assert len(failing.all()) == 1
    failing.failed.add(ALICE._replace(user="bob"))
    assert len(failing.all()) == 2
    failing.clock.at_ms += 60_000
    failing.failed.add(ALICE)
    assert failing.all()[-1].text.endswith("] (4 more failures since the last event)")


def test_in_1_strangers_cannot_fill_the_stream() -> None:
    """IN-1: invented names have few events per address, and all addresses have a limit."""
    failing = Failing()
    for number in range(1_000):
        failing.failed.add(ALICE._replace(user=f"u{number}"))
    assert len(failing.all()) == EVENTS_PER_ADDRESS
    for number in range(1_000):
        address = f"10.1.{number // 250}.{number % 250}", 1
        failing.failed.add(ALICE._replace(address=address))
    assert len(failing.all()) == EVENTS
    failing.clock.at_ms += 60_000
    failing.failed.add(ALICE)
    left_out = 2_000 - EVENTS
    assert failing.all()[EVENTS].text == (
        f"{left_out:,} further failed authentications without an event of their own"
    )


def test_in_1_text_of_strangers_is_escaped_and_cut() -> None:
    failing = Failing()
    long = "\x1b[2J\n" + "n" * 30_000
    address = "10.0.0.7", 1
    failing.failed.add(FailedLogin("IN", address, long, mechanism=long, user=long, client_id=long))
    (event,) = failing.all()
    assert event.text.isprintable() and event.cause.isprintable()
    assert "\\x1b[2J\\nnn" in event.text
    assert len(event.text) < 1_000
