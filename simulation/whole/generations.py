"""Judges the events about generations of groups: none is missing, and the causes are what happened
to the members (IN-1).

The generations are those that members were given. A member leaves because its client closes, or
polls too seldom; it times out because something disturbed it, its coordinator or the links of the
coordinator's broker.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.cluster.layout import GROUP_TOPIC
from barnabas.coordinator.member import short_name
from barnabas.coordinator.state_partition import partition_of
from simulation.whole.deeds import Deeds, Reported
from simulation.whole.disturbances import Disturbances
from simulation.whole.environment import COPIERS, Options
from simulation.whole.history import Attendance, History, Owned
from simulation.whole.rules import Tally
from simulation.whole.seams import EPOCH_MS

_ENDED = re.compile(r"group (\S+): generation (\d+) -> (\d+) in (\d+) ms")
_WHAT = (
    "joined",
    "left",
    "session timed out",
    "did not rejoin in time",
    "did not send its SyncGroup in time",
    "changed its subscription",
    "rejoined as leader",
)
_CAUSE = re.compile(
    rf"(?:^|, )(\S+) \(([^()]*)\) ({'|'.join(_WHAT)})(?: \((.{{1,80}}?)\)(?=, \S+ \(|$))?"
)
_MORE = re.compile(r" and \d+ more$")
_CLOSED, _TOO_SELDOM = "the consumer was closed", "no poll within "
_HOST = "/clients"
_GROUP_PARTITIONS = 2
_SOON_MS = 1_000


class Generation(NamedTuple):
    """A rebalance as its coordinator reports it."""

    reported: Reported
    group: str
    before: int
    after: int
    began_ms: int


class Generations:
    """`excused` counts the missing events by the reason that excuses them."""

    def __init__(self, deeds: Deeds, history: History, options: Options) -> None:
        self._deeds = deeds
        self._history = history
        self._options = options
        self._disturbances = Disturbances(deeds)
        self._readers = {
            short_name(member): reader for member, reader in history.readers_by_member.items()
        }
        self._reported = list(self._generations())
        self.excused: Counter[str] = Counter()

    def _generations(self) -> Iterator[Generation]:
        for each in self._deeds.reported:
            if each.event.kind == "group-generation":
                match = _ENDED.match(each.event.text)
                if match is not None:
                    group, before, after, took_ms = match.groups()
                    began_ms = each.at_ms - int(took_ms)
                    yield Generation(each, group, int(before), int(after), began_ms)

    def judge(self, tally: Tally) -> None:
        seen: dict[tuple[str, int], Owned] = {}
        for owned in self._history.owned:
            if owned.generation > 0:
                seen.setdefault((owned.group, owned.generation), owned)
        for (group, number), owned in seen.items():
            found = any(
                each.group == group and each.before < number <= each.after
                for each in self._reported
            )
            why = "" if found else self._why_silent(owned)
            self.excused[why] += bool(why)
            text = "generation {} of {}, which {} was given, is not reported"
            tally.judge("reported", found or bool(why), text, number, group, owned.member)
        for each in self._reported:
            wrong = self._wrong(each)
            event = each.reported.event
            tally.judge("cause", not wrong, "{}: {}: {}", event.text, event.cause, wrong)

    def _why_silent(self, owned: Owned) -> str:
        """Return why a coordinator could not report a generation, or "" if it could: it lost the
        group before the generation was safe, and the next coordinator only loaded it."""
        at_ms = owned.at_ms - EPOCH_MS
        partition = partition_of(owned.group, _GROUP_PARTITIONS)
        for change in self._deeds.changes:
            name = change.name
            is_lost = change.before.leader != change.after.leader
            is_soon = at_ms - self._options.session_timeout_ms <= change.at_ms <= at_ms + _SOON_MS
            if name == (GROUP_TOPIC, partition) and is_lost and is_soon:
                return "the coordinator was replaced before the generation was safe"
        return ""

    def _wrong(self, generation: Generation) -> str:
        """Return what is wrong with an event about a generation, or "" if its cause is true."""
        event, span, at_ms = generation.reported.event, *generation.reported[:2]
        if event.group != generation.group:
            return f"it is about {event.group}"
        causes = _MORE.sub("", event.cause)
        found = list(_CAUSE.finditer(causes))
        if "".join(each.group(0) for each in found) != causes:
            return "not a known cause"
        if not self._has_led(span.broker_id, generation):
            return f"broker {span.broker_id} was not the coordinator"
        for match in found:
            who, host, what, reason = match.groups()
            if host != _HOST:
                return f"{who} is not at {host}"
            wrong = self._wrong_about(generation, who, (what, reason or ""), at_ms)
            if wrong:
                return wrong
        return ""

    def _has_led(self, broker_id: int, generation: Generation) -> bool:
        """Return whether the broker led the group's partition at any time of the rebalance."""
        name = (GROUP_TOPIC, partition_of(generation.group, _GROUP_PARTITIONS))
        changes = [each for each in self._deeds.changes if each.name == name]
        if not changes:
            return True
        leader = changes[0].before.leader
        for change in changes:
            if change.at_ms >= generation.began_ms and leader == broker_id:
                return True
            if change.at_ms > generation.reported.at_ms:
                return False
            leader = change.after.leader
        return leader == broker_id

    def _wrong_about(
        self, generation: Generation, who: str, did: tuple[str, str], at_ms: int
    ) -> str:
        """Return what is wrong with the statement that a member did this, for this reason."""
        what, reason = did
        group, options = generation.group, self._options
        reader = self._readers.get(who)
        attendances = [
            each
            for each in self._history.attendances
            if each.group == group and (reader is None or each.who == reader)
        ]
        if reader is not None and not attendances:
            return f"{who} is not a member of {group}"
        from_ms = generation.began_ms - _SOON_MS
        since_ms = from_ms - options.max_poll_interval_ms
        is_slow = group == COPIERS or self._disturbances.any_between(since_ms, at_ms)
        # A request may be sent several times before it reaches the coordinator.
        late_ms = options.max_block_ms if is_slow else _SOON_MS
        if what in ("joined", "changed its subscription", "rejoined as leader"):
            was_there = any(
                each.began_ms - EPOCH_MS <= at_ms and _closed_ms(each) >= from_ms - late_ms
                for each in attendances
            )
            return "" if was_there else f"{who} did not take part at that time"
        if what == "left":
            has_closed = any(from_ms - late_ms <= _closed_ms(each) <= at_ms for each in attendances)
            holds = {_CLOSED: has_closed}.get(reason, reason.startswith(_TOO_SELDOM) and is_slow)
            return "" if holds else f"{who} did not leave for this reason"
        return "" if is_slow else f"nothing disturbed {who} or its coordinator"


def _closed_ms(attendance: Attendance) -> int:
    closed_ms = attendance.closed_ms
    return 1 << 62 if closed_ms is None else closed_ms - EPOCH_MS
