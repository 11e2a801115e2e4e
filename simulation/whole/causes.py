"""Judges the events that brokers reported: none is missing, and each cause is what happened (IN-1).

The metadata store decides what changed, and clients see which generations there were. Each of these
needs an event at the broker that decided it, unless that process ended before it could report it or
never learned of its own decision. The cause of each event is compared with what the run did: a
broker or client named in the cause must have been disturbed, stopped or registered, or an operator
must have asked.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from barnabas.cluster.controller_requests import LONGEST_CAUSE
from barnabas.cluster.image import NO_LEADER
from barnabas.types import TopicPartition
from simulation.whole.deeds import Change, Deeds, Registration, Reported, Span
from simulation.whole.disturbances import Disturbances
from simulation.whole.environment import SHIFTING, SURE
from simulation.whole.plan import ADD_PARTITIONS, TOPIC_CONFIG, Plan
from simulation.whole.rules import Tally

_ELECTED = re.compile(r"partitionEpoch=(\d+)\)")
_LEADER_EPOCH = re.compile(r"LeaderAndIsr\(leader=-?\d+, leaderEpoch=(\d+)")
_ROLE = re.compile(r" starts at leader epoch (\d+) ")
_DECIDED = re.compile(r"controller (\d+) decided it in epoch (\d+)(?:: (.+))?")
_UPDATED = re.compile(r" and version updated to (\d+)$")
_REASONS = re.compile(
    r"(?P<failed>broker (\d+) failed: its session ended)"
    r"|(?P<returned>broker (\d+) failed and re-registered)"
    r"|(?P<stopped>broker (\d+) has stopped after its controlled shutdown)"
    r"|(?P<shutdown>controlled shutdown of broker (\d+))"
    r"|(?P<lost>broker (\d+) lost its replica with a log directory or a damaged log)"
    r"|(?P<hosts>broker (\d+) hosts its replica again)"
    r"|(?P<registered>brokers? (\d+(?:, \d+)*) registered)"
    r"|(?P<trusted>brokers? (\d+(?:, \d+)*) withdrew the warning of lost records)"
    r"|(?P<absent>controller \d+ took over and found brokers? (\d+(?:, \d+)*) not registered)"
    r"|(?P<took>controller (\d+) took over)"
    r"|(?P<lossy>; brokers? (\d+(?:, \d+)*) may have lost records)"
    r"|(?P<preferred>an administrator requested an election of preferred leaders)"
    r"|(?P<balance>its preferred leader led too few of its partitions \(automatic rebalance\))"
    r"|(?P<reassign>an administrator requested a reassignment)"
    r"|(?P<targets>all target replicas of the reassignment are in sync)"
    r"|(?P<configs>the topic's configs allow it now)"
    r"|(?P<added>partitions were added)"
    r"|(?P<ends>the log ends of all replicas are known, and the longest log leads)"
)
_NUMBERS = re.compile(r"\d+")
_LAG = re.compile(
    r"broker (?P<id>\d+) (?:is (?P<records>\d+) records? behind and (?:last had all records "
    r"(?P<ms>\d+) ms ago \(replica\.lag\.time\.max\.ms is (?P<allowed>\d+)\)"
    r"|has never had all records in this leader epoch)|has not fetched in this leader epoch)"
)
_CAUGHT_UP = re.compile(r"broker (\d+) has caught up")
_LEAVING = ("failed", "returned", "stopped", "shutdown", "lost", "absent", "lossy")
"""The reasons that take the named brokers out of an ISR."""
_ARRIVING = (
    "registered",
    "trusted",
    "hosts",
    "returned",
    "took",
    "absent",
    "ends",
    "configs",
    "added",
)
"""The reasons why a partition without a leader gets one."""
_ASKED = ("preferred", "balance", "targets", "ends", "reassign")

_ASKED_OF_A_TOPIC = {"configs": TOPIC_CONFIG, "added": ADD_PARTITIONS}

_SOON_MS = 1_000
"""The maximum time that an answer over an undisturbed network takes, with what depends on it."""
_ASKED_MS = 12_000
"""How long an operator's request may be under way."""
_KNOWN_MS = 15_000
"""The maximum age of what a disturbed controller knows about the brokers."""


class Reason(NamedTuple):
    kind: str
    brokers: tuple[int, ...]


def reasons_in(cause: str) -> list[Reason] | None:
    """Return the reasons of a controller's cause, or None if it has any unknown text."""
    found: list[Reason] = []
    end = 0
    for match in _REASONS.finditer(cause):
        text = match.group(0)
        if found:
            end += 0 if text.startswith(";") else len(", ")
        if match.start() != end:
            return None
        # The numbered groups are inside the group of the alternative.
        kind = next(name for name, part in match.groupdict().items() if part is not None)
        named = text.partition(" found ")[2] if kind == "absent" else text
        found.append(Reason(kind, tuple(map(int, _NUMBERS.findall(named)))))
        end = match.end()
    return found if found and end == len(cause) else None


class Causes:
    """Judges the changes of partitions. `excused` counts the missing events by the reason that
    excuses them.
    """

    def __init__(self, deeds: Deeds, plan: Plan) -> None:
        self._deeds = deeds
        self._plan = plan
        self._disturbances = Disturbances(deeds)
        self._events: dict[tuple[Span, TopicPartition, str, int], list[Reported]] = {}
        self._moves: dict[tuple[Span, TopicPartition], list[Reported]] = {}
        self.excused: Counter[str] = Counter()
        self._stated: dict[tuple[TopicPartition, int], set[str]] = {}
        """The causes that controllers have reported, by partition and leader epoch."""
        for each in deeds.reported:
            self._file(each)

    def _file(self, reported: Reported) -> None:
        """Make an event available by the change that it reports."""
        event = reported.event
        name = TopicPartition(event.topic, event.partition)
        if event.kind == "reassignment":
            self._moves.setdefault((reported.span, name), []).append(reported)
        elif event.kind in ("election", "isr-shrink", "isr-expand"):
            by_controller = _ELECTED.search(event.text)
            epoch = _LEADER_EPOCH.search(event.text)
            if epoch is not None:
                self._stated.setdefault((name, int(epoch.group(1))), set()).add(event.cause)
            found = by_controller or _UPDATED.search(event.text)
            if found is not None:
                who = "controller" if by_controller else "leader"
                key = reported.span, name, who, int(found.group(1))
                self._events.setdefault(key, []).append(reported)

    def judge(self, tally: Tally) -> None:
        for number, change in enumerate(self._deeds.changes):
            # A deletion has an event of its own.
            if _is_visible(change) and not change.is_deletion:
                if change.before.leader_epoch == change.after.leader_epoch:
                    self._judge_proposal(tally, number, change)
                else:
                    self._judge_decision(tally, change)

        for each in self._deeds.reported:
            if each.event.kind in ("leader", "follower"):
                wrong = self._wrong_role(each)
                text, cause = each.event.text, each.event.cause
                tally.judge("cause", not wrong, "{}: {}: {}", text, cause, wrong)

    def _wrong_role(self, reported: Reported) -> str:
        """Return what is wrong with the cause of a new role, which the controller has sent."""
        event = reported.event
        decided = _DECIDED.fullmatch(event.cause)
        role = _ROLE.search(event.text)
        if decided is None or role is None:
            return "not a known cause"
        controller_id, _, why = decided.groups()
        if not any(each.broker_id == int(controller_id) for each in self._deeds.terms):
            return f"broker {controller_id} was never the controller"
        key = TopicPartition(event.topic, event.partition), int(role.group(1))
        stated = {each[:LONGEST_CAUSE] for each in self._stated.get(key, ())}
        return f"in truth {sorted(stated)}" if why and stated and why not in stated else ""

    # ---- what leaders decide ----

    def _judge_proposal(self, tally: Tally, number: int, change: Change) -> None:
        """Judge a change of the ISR that the leader proposed."""
        spans = [each for each in self._deeds.spans if each.broker_id == change.after.leader]
        found = [
            each
            for span in spans
            for each in self._events.get((span, change.name, "leader", change.version), ())
            if each.at_ms >= change.at_ms
        ]
        if not found:
            why = self._why_silent(number, change)
            self.excused[why] += bool(why)
            tally.judge("reported", bool(why), "its leader does not report {}", change)
            return
        tally.judge("reported", True, "")
        event = found[0].event
        removed = set(change.before.isr) - set(change.after.isr)
        added = set(change.after.isr) - set(change.before.isr)
        wrong = (
            self._wrong_shrink(change, event.cause, removed)
            if removed
            else self._wrong_expansion(change, event.cause, added)
        )
        tally.judge("cause", not wrong, "{}: {}: {}", change, event.cause, wrong)

    def _why_silent(self, number: int, change: Change) -> str:
        """Return why a leader could not report a change of its own, or "" if it could.

        Its process or its leadership ended before it had its answer; the answer takes long only if
        one of the two brokers was disturbed.
        """
        leader = change.after.leader
        ends = [
            (span.ended_ms, "the leader's process ended")
            for span in self._deeds.spans
            if span.broker_id == leader and span.begun_ms <= change.at_ms < span.ended_ms
        ]
        for later in self._deeds.changes[number + 1 :]:
            if later.name == change.name and later.after.leader_epoch != change.after.leader_epoch:
                ends.append((later.at_ms, "the leader was replaced"))
                break
        if not ends:
            return "the leader's process ended"
        end_ms, why = min(ends)
        asked = {leader} | ({change.span.broker_id} if change.span is not None else set())
        is_prompt = end_ms - change.at_ms <= _SOON_MS
        is_held_up = self._disturbances.between(asked, change.at_ms - _SOON_MS, end_ms)
        return f"{why} before its answer" if is_prompt or is_held_up else ""

    def _wrong_shrink(self, change: Change, cause: str, removed: set[int]) -> str:
        named = list(_LAG.finditer(cause))
        if ", ".join(each.group(0) for each in named) != cause:
            return "not a known cause"
        if {int(each["id"]) for each in named} != removed:
            return f"in truth {sorted(removed)} left the ISR"
        for each in named:
            allowed_ms = self._plan.lag_time_max_ms
            behind_ms = allowed_ms if each["ms"] is None else int(each["ms"])
            if each["allowed"] is not None and int(each["allowed"]) != allowed_ms:
                return f"in truth {allowed_ms} ms are allowed"
            if behind_ms < allowed_ms:
                return "it was not behind for long enough"
            pair = {change.after.leader, int(each["id"])}
            from_ms = change.at_ms - behind_ms - _SOON_MS
            # A follower that has not fetched may not have heard from the controller.
            who = pair if each["ms"] is not None else None
            # After a deletion has been requested, the followers may stop before their leader.
            was_deleted = any(
                topic == change.name.topic and from_ms <= at_ms <= change.at_ms
                for topic, at_ms in self._deeds.deletions
            )
            is_excused = was_deleted or self._has_new_leader(change, from_ms)
            if not is_excused and not self._disturbances.between(who, from_ms, change.at_ms):
                return f"nothing disturbed brokers {sorted(pair)} since {from_ms} ms"
        return ""

    def _has_new_leader(self, change: Change, from_ms: int) -> bool:
        """Return whether the partition was created, or an election was held, in the time before.

        A follower that has heard of it before the leader fetches again only after a second, which
        is the whole lag time in some plans.
        """
        elections = [
            (each.name, each.at_ms)
            for each in self._deeds.changes
            if each.before.leader_epoch != each.after.leader_epoch
        ]
        return any(
            name == change.name and from_ms <= at_ms <= change.at_ms
            for name, at_ms in (*self._deeds.creations, *elections)
        )

    def _wrong_expansion(self, change: Change, cause: str, added: set[int]) -> str:
        named = list(_CAUGHT_UP.finditer(cause))
        if ", ".join(each.group(0) for each in named) != cause:
            return "not a known cause"
        if {int(each.group(1)) for each in named} != added:
            return f"in truth {sorted(added)} joined the ISR"
        for broker_id in added:
            if not self._was_registered(broker_id, change.at_ms - _KNOWN_MS, change.at_ms):
                return f"broker {broker_id} was not registered"
        return ""

    # ---- what controllers decide ----

    def _judge_decision(self, tally: Tally, change: Change) -> None:
        """Judge a change that the controller decided by itself."""
        span = change.span
        if span is None:
            tally.judge("reported", False, "nobody has decided {}", change)
            return
        found = list(self._events.get((span, change.name, "controller", change.version), ()))
        if not found and change.before.leader == change.after.leader:
            # A reassignment has a single event, also about the ISR.
            found = self._moves.get((span, change.name), [])
        found = [each for each in found if each.at_ms >= change.at_ms]
        if not found:
            why = self._why_unheard(change)
            self.excused[why] += bool(why)
            tally.judge("reported", bool(why), "the controller does not report {}", change)
            return
        tally.judge("reported", True, "")
        event = found[0].event
        wrong = self._wrong_decision(change, event.cause)
        tally.judge("cause", not wrong, "{}: {}: {}", change, event.cause, wrong)

    def _why_unheard(self, change: Change) -> str:
        """Return why a controller could not report its own decision, or "" if it could."""
        span = change.span
        assert span is not None
        if change.answered_ms is None:
            if span.ended_ms <= change.at_ms + _KNOWN_MS:
                return "the controller's process ended before it knew its decision"
            return ""
        if span.ended_ms <= change.answered_ms:
            return "the controller's process ended as it learned of its decision"
        return ""

    def _wrong_decision(self, change: Change, cause: str) -> str:
        reasons = reasons_in(cause)
        if reasons is None:
            return "not a known cause"
        for reason in reasons:
            wrong = self._wrong_reason(change, reason)
            if wrong:
                return wrong
        kinds = {each.kind for each in reasons}
        gone = {each for reason in reasons if reason.kind in _LEAVING for each in reason.brokers}
        before, after = change.before, change.after
        is_asked = not kinds.isdisjoint(_ASKED)
        removed = set(before.isr) - set(after.isr)
        if not is_asked and not removed <= gone:
            return f"why {sorted(removed - gone)} left the ISR is not said"
        if before.leader == after.leader or is_asked:
            return ""
        if before.leader != NO_LEADER and before.leader not in gone:
            return f"why broker {before.leader} leads no longer is not said"
        if before.leader == NO_LEADER and kinds.isdisjoint(_ARRIVING):
            return "why there is a leader again is not said"
        return ""

    def _wrong_reason(self, change: Change, reason: Reason) -> str:
        """Return what is wrong with a single reason, or "" if it is what happened."""
        kind, at_ms = reason.kind, change.at_ms
        for broker_id in reason.brokers:
            if kind in ("failed", "returned", "stopped"):
                wrong = self._wrong_end(broker_id, kind, at_ms)
            else:
                wrong = self._wrong_about(broker_id, kind, change)
            if wrong:
                return wrong
        if kind in ("preferred", "balance") and change.replicas[:1] != (change.after.leader,):
            return f"broker {change.after.leader} is not the preferred leader of {change.replicas}"
        asked = _ASKED_OF_A_TOPIC.get(kind)
        if asked is not None and not (
            change.name.topic == SHIFTING and self._has_asked(asked, at_ms)
        ):
            return "no operator has asked for it"
        if kind == "preferred" and not self._has_asked("preferred", at_ms):
            return "no operator has asked for it"
        if kind in ("reassign", "targets") and not (
            change.name.topic == SURE and self._has_asked("reassign", at_ms, lasts=True)
        ):
            return "no operator has asked for it"
        return ""

    def _wrong_end(self, broker_id: int, kind: str, at_ms: int) -> str:
        """Return what is wrong with the statement that a broker's registration ended."""
        ended = [
            each
            for each in self._registrations(broker_id)
            if at_ms - _KNOWN_MS <= each.ended_ms <= at_ms
        ]
        if not ended:
            return f"the session of broker {broker_id} did not end"
        last = ended[-1]
        again = [each for each in self._registrations(broker_id) if each.began_ms >= last.ended_ms]
        if kind == "returned" and not any(each.began_ms <= at_ms for each in again):
            return f"broker {broker_id} had not registered again"
        was_asked = self._was_stopped(broker_id, last.began_ms, last.ended_ms)
        if kind == "stopped":
            return "" if was_asked else f"nobody asked broker {broker_id} to stop"
        session_ms = self._plan.session_timeout_ms
        since_ms = last.ended_ms - session_ms - _SOON_MS
        if was_asked or self._disturbances.of_session(broker_id, since_ms, last.ended_ms):
            return ""
        return f"nothing ended the session of broker {broker_id} at {last.ended_ms} ms"

    def _wrong_about(self, broker_id: int, kind: str, change: Change) -> str:
        at_ms = change.at_ms
        if kind == "shutdown" and not self._was_stopped(broker_id, at_ms - _KNOWN_MS, at_ms):
            return f"nobody asked broker {broker_id} to stop"
        if kind == "lossy" and not self._disturbances.of_power(broker_id, at_ms):
            return f"broker {broker_id} was not stopped by anything"
        if kind in ("lost", "hosts") and not self._disturbances.of_disk(broker_id, at_ms):
            return f"nothing happened to the disk of broker {broker_id}"
        is_there = self._was_registered(broker_id, at_ms - _KNOWN_MS, at_ms)
        if kind in ("registered", "trusted", "hosts") and not is_there:
            return f"broker {broker_id} was not registered"
        if kind == "took" and (change.span is None or change.span.broker_id != broker_id):
            return f"{change.span} decided it"
        if kind == "absent":
            since_ms = max(
                (each.began_ms for each in self._deeds.terms if each.began_ms <= at_ms), default=0
            )
            if self._was_registered_throughout(broker_id, since_ms - _SOON_MS, at_ms):
                return f"broker {broker_id} was registered all the time since {since_ms} ms"
        return ""

    # ---- the record ----

    def _registrations(self, broker_id: int) -> list[Registration]:
        return [each for each in self._deeds.registrations if each.broker_id == broker_id]

    def _was_registered(self, broker_id: int, from_ms: int, to_ms: int) -> bool:
        return any(
            each.began_ms <= to_ms and each.ended_ms >= from_ms
            for each in self._registrations(broker_id)
        )

    def _was_registered_throughout(self, broker_id: int, from_ms: int, to_ms: int) -> bool:
        return any(
            each.began_ms <= from_ms and each.ended_ms > to_ms
            for each in self._registrations(broker_id)
        )

    def _was_stopped(self, broker_id: int, from_ms: int, to_ms: int) -> bool:
        return any(
            who == broker_id and from_ms <= at_ms <= to_ms for who, at_ms in self._deeds.stops
        )

    def _has_asked(self, kind: str, at_ms: int, *, lasts: bool = False) -> bool:
        """Return whether an operator asked for the change. A reassignment lasts until it is
        complete.
        """
        return any(
            each.kind == kind and each.at_ms <= at_ms and (lasts or at_ms - each.at_ms <= _ASKED_MS)
            for each in self._deeds.deeds
        )


def _is_visible(change: Change) -> bool:
    before, after = change.before, change.after
    return before.leader != after.leader or set(before.isr) != set(after.isr)
