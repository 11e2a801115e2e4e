"""Adds an event when access is denied. The event names the rule that caused the denial, or says
that no rule applied (IN-1).

The number of events is limited, both for each client and in total (`broker.event_limit`), but the
counter includes all denials. Allowed operations add no work here.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.broker.event_limit import EventLimit
from barnabas.counted import counted
from barnabas.events import Event
from barnabas.metrics import Family, Registry, Sample, counter
from barnabas.printable import printable_within
from barnabas.security.acl import ResourceType
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
"""The largest number of events per minute, for all clients together."""

_LONGEST_NAME = 249  # the longest topic name; other names can be 32 KiB long


class Denials:
    """Counts the denials on one broker, and adds events within these limits."""

    __slots__ = ("_counts", "_events", "_limit")

    def __init__(self, events: EventLog, clock: Clock, metrics: Registry) -> None:
        self._events = events
        self._limit = EventLimit(
            clock, self._report_others, per_source=EVENTS_PER_CLIENT, total=EVENTS
        )
        self._counts: Counter[Needs] = Counter()
        metrics.declare(self._families)

    def add(self, context: Asking, needs: Needs, name: str | None, rules: AclRules) -> None:
        """Count a denial, and add its event if one is due.

        `name` is the name of the resource, or None for any resource of this type.
        """
        self._counts[needs] += 1
        client = context.client
        one = client.principal, client.address
        more = self._limit.count((*one, needs, name and name[:_LONGEST_NAME]), one)
        if more is not None:
            self._events.add(_event(context, needs, name, rules, more), _log)

    def _report_others(self, left_out: int) -> None:
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
    """Return a name that was chosen by a client, sanitised and truncated."""
    return printable_within(name, _LONGEST_NAME)
