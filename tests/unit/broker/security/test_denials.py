"""Events of denied access: one per minute and kind, within limits (IN-1)."""

from __future__ import annotations

import re
from typing import NamedTuple

import pytest

from barnabas.broker.network.client_connection import ClientConnection
from barnabas.broker.security.authorization import Needs
from barnabas.broker.security.denials import EVENTS, EVENTS_PER_CLIENT, Denials
from barnabas.events import Event, EventLog
from barnabas.metrics import Registry
from barnabas.protocol.api import PRODUCE, Api
from barnabas.security.acl import Operation, Principal, ResourceType
from barnabas.security.acl_binding import AclBinding, AclEntry, Pattern, PatternType, PermissionType
from barnabas.security.acl_rules import AclRules
from tests.kit.set_clock import SetClock

MINUTE_MS = 60_000
WRITE = Needs(Operation.WRITE, ResourceType.TOPIC)


class Asking(NamedTuple):
    client: ClientConnection
    api: Api = PRODUCE


def asking(name: str = "alice") -> Asking:
    return Asking(ClientConnection("IN", Principal("User", name), "10.0.0.7", "10.0.0.1"))


class Denied:
    def __init__(self, *rules: AclBinding) -> None:
        self.clock = SetClock()
        self.metrics = Registry()
        self.events = EventLog(self.clock.wall_ms, self.metrics)
        self.denials = Denials(self.events, self.clock, self.metrics)
        self.rules = AclRules.of(rules)

    def add(self, name: str | None = "orders", user: str = "alice", needs: Needs = WRITE) -> None:
        self.denials.add(asking(user), needs, name, self.rules)

    def all(self) -> list[Event]:
        return self.events.after(0, 10_000)


def rule(
    entry: AclEntry, name: str = "orders", pattern: PatternType = PatternType.LITERAL
) -> AclBinding:
    return AclBinding(Pattern(ResourceType.TOPIC, name, pattern), entry)


BOB = AclEntry("User:bob", "*", Operation.WRITE, PermissionType.ALLOW)
NOBODY = AclEntry("User:*", "10.0.0.7", Operation.ALL, PermissionType.DENY)


@pytest.mark.parametrize(
    ("rules", "cause"),
    [
        ((), "no rule is about topic orders, and allow.everyone.if.no.acl.found is false"),
        ((rule(BOB, "or"),), "no rule is about topic orders, and .*"),
        ((rule(BOB),), "the only rule about topic orders does not allow it"),
        ((rule(BOB), rule(BOB, "*")), "none of the 2 rules about topic orders allows it"),
        (
            (rule(BOB), rule(NOBODY, "ord", PatternType.PREFIXED)),
            r"rule: deny User:\* All on each topic that begins with ord, from 10.0.0.7",
        ),
        ((rule(BOB), rule(NOBODY, "*")), r"rule: deny User:\* All on every topic, from 10.0.0.7"),
    ],
)
def test_in_1_the_cause_is_what_the_rules_say(rules: tuple[AclBinding, ...], cause: str) -> None:
    denied = Denied(*rules)
    denied.add()
    (event,) = denied.all()
    assert re.fullmatch(cause, event.cause)
    assert event.text == (
        f"User:alice is denied Write on topic orders from host 10.0.0.7 for Produce: {event.cause}"
    )
    assert (event.kind, event.topic, event.is_harmless) == ("access-denied", "orders", False)


def test_in_1_any_resource_of_a_type_has_a_cause_too() -> None:
    denied = Denied()
    denied.add(None)
    assert denied.all()[0].cause == "no rule allows it on any topic"
    denied = Denied(rule(NOBODY, "*"))
    denied.add(None)
    assert denied.all()[0].cause == "rule: deny User:* All on every topic, from 10.0.0.7"


def test_in_1_a_repeated_denial_has_one_event_a_minute() -> None:
    """IN-1: the next one says how often it happened in between; another user has an own one."""
    denied = Denied()
    for _ in range(5):
        denied.add()
    denied.add(user="bob")
    denied.add(needs=Needs(Operation.READ, ResourceType.TOPIC))
    assert len(denied.all()) == 3
    denied.clock.at_ms += MINUTE_MS
    denied.add()
    denied.add()
    assert len(denied.all()) == 4
    assert denied.all()[-1].text.endswith(" is false (4 more denials since the last event)")
    samples = {
        sample.labels: sample.value
        for read in denied.metrics
        for family in read()
        if family.name == "barnabas_access_denied_total"
        for sample in family.samples
    }
    assert samples == {
        (("operation", "Write"), ("resource", "Topic")): 8,
        (("operation", "Read"), ("resource", "Topic")): 1,
    }


def test_in_1_invented_names_cannot_push_out_other_events() -> None:
    """IN-1: one client has few events a minute, and all of them together have a limit."""
    denied = Denied()
    for number in range(1_000):
        denied.add(f"t{number}")
    assert len(denied.all()) == EVENTS_PER_CLIENT
    for number in range(1_000):
        denied.add(user=f"u{number}")
    assert len(denied.all()) == EVENTS
    denied.clock.at_ms += MINUTE_MS
    denied.add("another")
    left_out = 2_000 - EVENTS
    assert [each.text for each in denied.all()[EVENTS:]] == [
        f"{left_out:,} further denials without an event of their own",
        "User:alice is denied Write on topic another from host 10.0.0.7 for Produce: no rule is "
        "about topic another, and allow.everyone.if.no.acl.found is false",
    ]


def test_in_1_counts_whose_next_event_never_comes_are_reported() -> None:
    denied = Denied()
    for _ in range(8):
        denied.add()
    denied.clock.at_ms += 2 * MINUTE_MS
    denied.add("another")
    assert denied.all()[1].text == "7 further denials without an event of their own"


def test_in_1_hostile_names_are_escaped_and_cut() -> None:
    denied = Denied()
    denied.add("\x1b[2J" + "n" * 30_000, user="a\nb" + "u" * 30_000)
    (event,) = denied.all()
    assert event.text.startswith("User:a\\nbuu")
    assert event.topic.startswith("\\x1b[2Jnn")
    assert event.text.isprintable() and event.topic.isprintable() and event.cause.isprintable()
    assert len(event.topic) <= 249
    assert len(event.text) < 1_200
