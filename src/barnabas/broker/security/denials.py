"""Adds an event for denied access, with the rule that decided, or the lack of one (IN-1).

A client retries denied requests, and a hostile client can invent any number of names. Each kind of
denial (principal, host, operation and resource) therefore has at most one event a minute, which
includes the number of earlier denials. The number of events per minute is also limited, per client
and in total. A last event gives the number of denials without an event. The counter includes every
denial. An allowed operation costs nothing here.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.counted import counted
from barnabas.events import Event
from barnabas.metrics import Family, Registry, Sample, counter
from barnabas.printable import printable_within
from barnabas.security.acl import Principal, ResourceType
from barnabas.security.acl_binding import Pattern, pascal_name
from barnabas.security.acl_host import java_host
from barnabas.security.acl_text import noun_of, resource_text, rule_text

if TYPE_CHECKING:
    from barnabas.broker.security.authorization import Asking, Needs
    from barnabas.clock import Clock
    from barnabas.events import EventLog
    from barnabas.security.acl_rules import AclRules, Denial

_log = logging.getLogger(__name__)

EVENTS_PER_CLIENT: Final = 20
EVENTS: Final = 200
"""The maximum number of events per minute, for all clients together."""

_MINUTE_MS = 60_000
_LONGEST_NAME = 249  # the longest topic name; other names can have 32 KiB

_Key = tuple[Principal, str, "Needs", str | None]


class _Kind:
    """Counts the denials of one kind since its last event."""

    __slots__ = ("more", "reported_at_ms")

    def __init__(self, now_ms: int) -> None:
        self.reported_at_ms = now_ms
        self.more = 0


class Denials:
    """Counts what one broker denies, and adds the events within these limits."""

    __slots__ = ("_began_at_ms", "_clients", "_clock", "_counts", "_events", "_kinds", "_left_out")

    def __init__(self, events: EventLog, clock: Clock, metrics: Registry) -> None:
        self._events = events
        self._clock = clock
        self._kinds: dict[_Key, _Kind] = {}  # in the order of their last events
        self._began_at_ms = -_MINUTE_MS
        self._clients: Counter[tuple[Principal, str]] = Counter()  # events since then
        self._left_out = 0  # denials since then that no event counts
        self._counts: Counter[Needs] = Counter()
        metrics.declare(self._families)

    def add(self, context: Asking, needs: Needs, name: str | None, rules: AclRules) -> None:
        """Count a denial, and add its event if it is due.

        `name` is that of the resource; None stands for any resource of its type.
        """
        self._counts[needs] += 1
        client = context.client
        now_ms = self._clock.monotonic_ms()
        key = client.principal, client.address, needs, name and name[:_LONGEST_NAME]
        kind = self._kinds.get(key)
        if kind is not None and now_ms - kind.reported_at_ms < _MINUTE_MS:
            kind.more += 1
            return
        if now_ms - self._began_at_ms >= _MINUTE_MS:
            self._begin(now_ms)
        one = client.principal, client.address
        # Each event adds one client at most, so all tables have at most as many entries as events.
        if self._clients[one] >= EVENTS_PER_CLIENT or self._clients.total() >= EVENTS:
            self._left_out += 1
            return
        self._clients[one] += 1
        more = 0 if kind is None else kind.more
        self._kinds.pop(key, None)
        self._kinds[key] = _Kind(now_ms)
        self._events.add(_event(context, needs, name, rules, more), _log)

    def _begin(self, now_ms: int) -> None:
        """Begin another minute, and report how many denials had no event in the last one."""
        self._began_at_ms = now_ms
        self._clients.clear()
        left_out, self._left_out = self._left_out, 0
        # Denials that were counted after their kind's event are reported by its next event, which
        # may never occur; a kind is kept for one more minute only.
        for key, kind in list(self._kinds.items()):
            if now_ms - kind.reported_at_ms < 2 * _MINUTE_MS:
                break
            left_out += kind.more
            del self._kinds[key]
        if left_out:
            text = f"{counted(left_out, 'further denial')} without an event of their own"
            cause = "at most one event per minute reports the same denial, and only some others"
            self._events.add(Event("access-denied", text, cause), _log)

    def _families(self) -> Iterable[Family]:
        samples = [
            Sample(
                count,
                (
                    ("operation", pascal_name(needs.operation)),
                    ("resource", pascal_name(needs.resource_type)),
                ),
            )
            for needs, count in self._counts.items()
        ]
        sentence = "Operations that the authorizer denied, by operation and type of resource"
        return (counter("barnabas_access_denied_total", sentence, samples),)


def _event(context: Asking, needs: Needs, name: str | None, rules: AclRules, more: int) -> Event:
    client, (operation, resource_type) = context.client, needs
    who, host = str(client.principal), java_host(client.address)
    if name is None:
        denial = rules.denial_everywhere(who, host, operation, resource_type)
        resource = f"any {noun_of(resource_type)}"
    else:
        denial = rules.denial(who, host, operation, resource_type, name)
        resource = resource_text(Pattern(resource_type, _short(name)))
    cause = _cause(denial, resource, has_name=name is not None)
    text = (
        f"{_short(who)} is denied {pascal_name(operation)} on {resource} from host {host} "
        f"for {context.api.name}: {cause}"
    )
    if more:
        text += f" ({counted(more, 'more denial')} since the last event)"
    return Event(
        "access-denied",
        text,
        cause,
        topic=_short(name or "") if resource_type is ResourceType.TOPIC else "",
        group=_short(name or "") if resource_type is ResourceType.GROUP else "",
        is_harmless=False,
        advice="if it should be allowed, `barnabas acls explain` prints the command to allow it",
    )


def _cause(denial: Denial, resource: str, *, has_name: bool) -> str:
    if denial.rule is not None:
        return f"rule: {rule_text(denial.rule)}"
    if not has_name:
        return f"no rule allows it on {resource}"
    if not denial.about:
        return f"no rule is about {resource}, and allow.everyone.if.no.acl.found is false"
    if denial.about == 1:
        return f"the only rule about {resource} does not allow it"
    return f"none of the {counted(denial.about, 'rule')} about {resource} allows it"


def _short(name: str) -> str:
    """Return a name that a client chose as safe text of limited length."""
    return printable_within(name, _LONGEST_NAME)
