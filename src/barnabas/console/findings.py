"""Finds what needs human attention, with the cause if a broker's event states it. Pure.

A finding states only what was observed. Its cause is the text of an event about the same partition,
broker or group, or empty if there is no such event.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple, TypedDict
from urllib.parse import quote

from barnabas.client.admin.group_admin import GroupDescription
from barnabas.client.lag.group_lag import GroupLag
from barnabas.client.lag.verdict import State, Verdict
from barnabas.console.event_book import EventBook, EventFilter
from barnabas.console.shapes import EventRow, Finding, Severity
from barnabas.console.snapshot import ClusterLook, DiskLook, GroupLook, TransactionLook
from barnabas.console.topics import is_under_replicated
from barnabas.console.transactions import hanging
from barnabas.counted import counted
from barnabas.types import TopicPartition

MOST_OF_A_KIND: Final = 20
_OFTEN: Final = 6  # rebalances per minute
_NAMED: Final = 3
_RANKS: Final[dict[Severity, int]] = {"critical": 0, "warning": 1, "info": 2}
_PARTITION_KINDS: Final = ("election", "isr-shrink", "directory-lost")

_START_BROKER: Final = "Start the broker again, or move its replicas with `barnabas reassign`."
_READ_LOG: Final = "Look at the log and at the record of that group's consumers."
_BEHIND: Final[dict[State, tuple[Severity, str]]] = {
    State.STUCK: ("critical", _READ_LOG),
    State.STOPPED: (
        "warning",
        "Start the group's consumers. If nobody needs the group, delete it with its offsets.",
    ),
    State.FALLING_BEHIND: ("warning", "Add consumers, up to one for each partition."),
}


class Known(NamedTuple):
    """Holds what is known about a cluster from several kinds of polls."""

    look: ClusterLook
    disks: DiskLook
    groups: GroupLook
    transactions: TransactionLook
    events: EventBook


def findings(known: Known, now_ms: int) -> list[Finding]:
    """Return what needs human attention, starting with the most severe finding."""
    found = [
        *_controller(known),
        *_brokers(known),
        *_directories(known),
        *_partitions(known),
        *_groups(known.groups.lags.values(), known.events),
        *_rebalances(known.events, now_ms),
        *_transactions(known.transactions, now_ms),
    ]
    return sorted(found, key=lambda finding: _RANKS[finding["severity"]])


def topic_link(name: str) -> str:
    """Return the address of a topic's page."""
    return f"#/topics/{quote(name, safe='')}"


def _controller(known: Known) -> Iterator[Finding]:
    if known.look.cluster.controller_id not in known.look.live:
        yield Finding(
            severity="critical",
            what="No broker is the controller",
            why="",
            at=None,
            advice="No leader is elected until there is one: check the metadata store.",
            link="#/brokers",
        )


def _brokers(known: Known) -> Iterator[Finding]:
    """Yield the brokers that have replicas but are not in the cluster."""
    assigned = {broker for _, each in known.look.partitions() for broker in each.replicas}
    for broker in islice(sorted(assigned - known.look.live), MOST_OF_A_KIND):
        event = known.events.find(
            lambda row, broker=broker: (  # type: ignore[misc]
                row["kind"] in ("broker-failed", "broker-registered") and row["broker"] == broker
            )
        )
        # If the broker has registered since it last failed, the event for the present failure has
        # not arrived yet.
        has_failed = event is not None and event["kind"] == "broker-failed"
        yield Finding(
            severity="critical",
            what=f"Broker {broker} has replicas, but is not in the cluster",
            **_explained(event if has_failed else None),
            advice=_START_BROKER,
            link="#/brokers",
        )


def _directories(known: Known) -> Iterator[Finding]:
    for broker, directories in known.disks.directories.items():
        for each in directories:
            if each.error is None:
                continue
            event = known.events.find(
                lambda row, broker=broker, path=each.path: (  # type: ignore[misc]
                    row["kind"] == "directory-lost"
                    and row["broker"] == broker
                    and path in row["text"]
                )
            )
            yield Finding(
                severity="critical",
                what=f"Log directory {each.path} of broker {broker} is offline: {each.error}",
                **_explained(event),
                advice="" if event is None else event["advice"],
                link=f"#/brokers/{broker}",
            )


def _partitions(known: Known) -> Iterator[Finding]:
    views = dict(known.look.partitions())
    leaderless = [name for name, each in views.items() if each.leader < 0]
    short = [name for name, each in views.items() if each.leader >= 0 and is_under_replicated(each)]
    if leaderless:
        yield Finding(
            severity="critical",
            what=f"{_have(leaderless, 'no leader')}: {_named(leaderless)}",
            **_explained(
                _last_change(known.events, leaderless), is_one_of_many=len(leaderless) > 1
            ),
            advice="Nothing can be read or written there until a replica in the ISR is back.",
            link=topic_link(leaderless[0].topic),
        )
    if short:
        last = _last_change(known.events, short)
        yield Finding(
            severity="warning",
            what=f"{_have(short, 'fewer replicas in sync than assigned')}: {_named(short)}",
            **_explained(last, is_one_of_many=len(short) > 1),
            advice="" if last is None else last["advice"],
            link=topic_link(short[0].topic),
        )


def _have(names: list[TopicPartition], what: str) -> str:
    return f"{counted(len(names), 'partition')} {'has' if len(names) == 1 else 'have'} {what}"


def _named(names: Iterable[TopicPartition]) -> str:
    every = list(names)
    more = f" and {len(every) - _NAMED} more" if len(every) > _NAMED else ""
    return ", ".join(map(str, every[:_NAMED])) + more


def _last_change(events: EventBook, names: Iterable[TopicPartition]) -> EventRow | None:
    """Return the last event about a change of any of these partitions, if there is one."""
    wanted = set(names)
    recovered: set[TopicPartition] = set()

    def is_about(row: EventRow) -> bool:
        name = TopicPartition(row["topic"], row["partition"])
        if name not in wanted or name in recovered:
            return False
        # Events from before the ISR grew do not explain the current state. The event that explains
        # it has not arrived yet.
        if row["kind"] == "isr-expand":
            recovered.add(name)
        return row["kind"] in _PARTITION_KINDS

    return events.find(is_about)


class _Explanation(TypedDict):
    """The fields of a finding that come from an event."""

    why: str
    at: int | None


def _explained(event: EventRow | None, *, is_one_of_many: bool = False) -> _Explanation:
    """Return the cause that an event states.

    `is_one_of_many`: name the event's partition, because its cause may not apply to the others.
    """
    if event is None:
        return _Explanation(why="", at=None)
    cause = event["cause"] or event["text"]
    if is_one_of_many:
        cause = f"{TopicPartition(event['topic'], event['partition'])}: {cause}"
    return _Explanation(why=cause, at=event["at"])


def _groups(lags: Iterable[GroupLag], events: EventBook) -> Iterator[Finding]:
    """Yield the groups that need human attention, up to a maximum number for each state."""
    by_state: dict[State, list[GroupLag]] = {}
    for lag in lags:
        by_state.setdefault(lag.together.state, []).append(lag)
    for state, (severity, advice) in _BEHIND.items():
        own = by_state.get(state, [])
        for lag in own[:MOST_OF_A_KIND]:
            group_id = lag.group.group_id
            name, verdict = _worst(lag)
            yield Finding(
                severity=severity,
                what=f"Group {group_id} {_STATES[state]}: {name}: {verdict.reason}",
                **_explained(_stop(events, lag.group) if state is State.STOPPED else None),
                advice=advice,
                link=f"#/groups/{quote(group_id, safe='')}",
            )
        if len(own) > MOST_OF_A_KIND:
            yield Finding(
                severity=severity,
                what=f"{counted(len(own) - MOST_OF_A_KIND, 'more group')}: {state.value}",
                why="",
                at=None,
                advice="",
                link="#/groups",
            )


def _rebalances(events: EventBook, now_ms: int) -> Iterator[Finding]:
    """Yield the groups that have rebalanced often within a minute, with the cause of the last
    rebalance.
    """
    counts = Counter(
        row["group"]
        for _, row in events.newer(0, EventFilter("group-generation", since_ms=now_ms - 60_000))
    )
    for group_id, count in counts.most_common(MOST_OF_A_KIND):
        if count >= _OFTEN:
            yield Finding(
                severity="warning",
                what=f"Group {group_id} has had {counted(count, 'rebalance')} in the last minute",
                **_explained(_last_generation(events, group_id)),
                advice="Members pause during a rebalance. Look for a member that restarts often.",
                link=f"#/groups/{quote(group_id, safe='')}",
            )


def _stop(events: EventBook, group: GroupDescription) -> EventRow | None:
    """Return the event that explains why the group has its current members, if there is one.

    A group is reported as stopped when its last generation has no member that reads the partition.
    If the event for this generation has not arrived yet, the last known event describes an earlier
    generation.
    """
    event = _last_generation(events, group.group_id)
    if event is None:
        return None
    # The broker makes the characters of a name printable without changing the length of the name.
    rest = event["text"][len(f"group {group.group_id}") :]
    found = _GENERATION.match(rest)
    count = int(found["members"] or 0) if found else -1
    return event if count == len(group.members) else None


def _last_generation(events: EventBook, group_id: str) -> EventRow | None:
    return events.find(lambda row: row["kind"] == "group-generation" and row["group"] == group_id)


_GENERATION: Final = re.compile(
    r": generation -?\d+ -> \d+ in \d+ ms, (?:empty|(?P<members>\d+) members?):"
)
"""Matches the text that follows the group name in a broker's event about a generation."""

_STATES: Final = {
    State.STUCK: "is stuck",
    State.STOPPED: "has stopped with unread records",
    State.FALLING_BEHIND: "is falling behind",
}


def _worst(lag: GroupLag) -> tuple[TopicPartition, Verdict]:
    return max(lag.verdicts.items(), key=lambda one: (one[1].state.severity, one[1].records or 0))


def _transactions(look: TransactionLook, now_ms: int) -> Iterator[Finding]:
    for each in islice(hanging(look, now_ms), MOST_OF_A_KIND):
        seconds = (now_ms - each.started_at_ms) // 1000
        yield Finding(
            severity="warning",
            what=f"Transaction {each.transactional_id} has been open for {seconds} s, longer than "
            f"its timeout of {each.timeout_ms / 1000:g} s",
            why="",
            at=None,
            advice="Readers of committed records wait for it: see `barnabas transactions`.",
            link="#/transactions",
        )
