"""Decides what `barnabas migrate` does next (MX-3). Pure.

Brokers are replaced one at a time, the controller last, so that it changes only once. A broker is
stopped only while every replica in the cluster is in sync, so that its controlled shutdown can hand
over every partition that has another replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from barnabas.cli.migrate.facts import UNKNOWN, ClusterFacts
from barnabas.counted import counted
from barnabas.types import TopicPartition

_NAMED = 3

# One request for all partitions of a large broker could time out.
BATCH = 100


class Kind(Enum):
    """Says what to do about the broker that is being replaced."""

    WAIT = "wait"
    STOP = "stop"
    START = "start"
    VERIFY = "verify"
    RESTORE = "restore"
    FINISH = "finish"


class Action(NamedTuple):
    """Says what to do next, with the reasons to wait or the partitions that it concerns."""

    kind: Kind
    reasons: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()


class Progress(NamedTuple):
    """How far the replacement of one broker has got."""

    broker_id: int
    ends: Mapping[TopicPartition, int] = {}
    """The high watermarks before the broker was stopped."""
    tails: Mapping[TopicPartition, int] = {}
    """Checksums of the last batches below them, of the replicas that cannot be compared."""
    directories: tuple[str, ...] = ()
    """The log directories of the broker before it was stopped."""
    has_stopped: bool = False  # the operator was asked to stop it
    has_started: bool = False  # the operator was asked to start it
    is_verified: bool = False


def order(facts: ClusterFacts, target: str) -> list[int]:
    """Return the brokers that are not yet of this kind, in the order of their replacement."""
    left = [each for each in facts.broker_ids() if facts.kind_of(each) != target]
    # A broker that is down is first, because nothing else can proceed without it.
    return sorted(left, key=lambda each: (facts.kind_of(each) != UNKNOWN, _weight(facts, each)))


def _weight(facts: ClusterFacts, broker_id: int) -> tuple[bool, int]:
    return broker_id == facts.controller_id, broker_id


def is_running(facts: ClusterFacts, broker_id: int, target: str) -> bool:
    """Return whether a broker is registered, and is not known to be of the other kind."""
    return broker_id in facts.brokers and facts.kind_of(broker_id) in (UNKNOWN, target)


def obstacles(facts: ClusterFacts, broker_id: int) -> list[str]:
    """Return why this broker cannot be stopped now."""
    found = [
        f"broker {each} is not alive"
        for each in facts.broker_ids()
        if each != broker_id and facts.kind_of(each) == UNKNOWN
    ]
    if facts.moving:
        found.append(f"{_names(facts.moving)} being reassigned")
    behind = facts.out_of_sync()
    if behind:
        found.append(f"{_names(behind)} not fully in sync")
    return found


def losses(facts: ClusterFacts, broker_id: int) -> list[str]:
    """Return what does not work while this broker is down."""
    alone, stuck = [], []
    for name, view in facts.partitions():
        if broker_id not in view.replicas:
            continue
        others = len(set(view.isr) - {broker_id})
        if not others:
            alone.append(name)
        elif others < facts.min_isr.get(name.topic, 1):
            stuck.append(name)
    found = []
    if alone:
        found.append(f"{_names(alone)} without a leader, because no other replica is in sync")
    if stuck:
        found.append(f"{_names(stuck)} below min.insync.replicas, so acks=all is rejected")
    return found


def next_action(facts: ClusterFacts, progress: Progress, target: str) -> Action:
    """Return the next action for the broker that is being replaced."""
    broker_id = progress.broker_id
    kind = facts.kind_of(broker_id)
    if kind == UNKNOWN:
        # A broker that is registered may only be slow.
        if broker_id in facts.brokers:
            return Action(Kind.WAIT, (f"broker {broker_id} does not respond",))
        if progress.has_stopped and not progress.has_started:
            return Action(Kind.START)
        reason = f"broker {broker_id} is not registered; start it"
        if progress.has_started:
            reason = (
                f"broker {broker_id} is not registered as {target} yet (if it has ended, its log "
                "says why)"
            )
        return Action(Kind.WAIT, (reason,))
    if kind != target and progress.has_started:
        reason = f"broker {broker_id} was started as {kind} again; stop it and start it as {target}"
        return Action(Kind.WAIT, (reason,))
    if kind != target:
        return _before_stop(facts, broker_id)
    behind = [
        name for name, view in facts.partitions() if broker_id in set(view.replicas) - set(view.isr)
    ]
    if behind:
        return Action(Kind.WAIT, (f"{_names(behind)} not in sync on broker {broker_id}",))
    if not progress.is_verified:
        return Action(Kind.VERIFY, partitions=tuple(facts.replicas_on(broker_id)))
    preferred = [
        name
        for name, view in facts.partitions()
        if view.replicas[:1] == (broker_id,) and view.leader != broker_id
    ]
    if preferred:
        return Action(Kind.RESTORE, partitions=tuple(preferred[:BATCH]))
    return Action(Kind.FINISH)


def _before_stop(facts: ClusterFacts, broker_id: int) -> Action:
    reasons = obstacles(facts, broker_id)
    return Action(Kind.WAIT, tuple(reasons)) if reasons else Action(Kind.STOP)


def _names(names: Iterable[TopicPartition]) -> str:
    """Return `2 partitions (t-0, t-1) are`, for the start of a clause."""
    found = sorted(names)
    shown = ", ".join(map(str, found[:_NAMED])) + ", ..." * (len(found) > _NAMED)
    return f"{counted(len(found), 'partition')} ({shown}) {'is' if len(found) == 1 else 'are'}"
