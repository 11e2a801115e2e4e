"""Logs the controller's decisions about elections, brokers, topics and reassignments.

Each decision comes with its causes, which the controller's machine provides.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.controller.topic_causes import Key, deletion_key, growth_key
from barnabas.broker.state_changes import election_line, election_lines, reassignment_lines
from barnabas.broker.state_events import MOST_EVENTS, report
from barnabas.cluster.image import NO_LEADER, ClusterImage, PartitionImage
from barnabas.counted import counted
from barnabas.events import Event

if TYPE_CHECKING:
    from barnabas.broker.controller.controller_settings import ControllerContext
    from barnabas.controller.decision import Decision, PartitionChange
    from barnabas.events import EventLog, Kind

_log = logging.getLogger(__name__)

_NOT_REGISTERED = "it was not registered when this controller was elected"
_OFFLINE = (
    "start a broker with an in-sync replica; as a last resort, barnabas elect-leaders "
    "--election-type unclean elects another replica and may lose records"
)


def log_election(
    events: EventLog,
    cause: str,
    found: ClusterImage,
    after: ClusterImage,
    known_live: Container[int],
) -> None:
    """Report that this broker has been elected. `found` is the cluster before this broker's first
    decision.

    `known_live` contains the brokers that are known to be live. Other leaders may not have started
    yet, for example while the whole cluster is being restarted.
    """
    text = (
        f"controller elected in epoch {after.controller_epoch}: broker {after.controller_id}; "
        f"live brokers: {len(after.brokers)}, topics: {len(after.topics)}: {cause}"
    )
    events.add(
        Event("controller-elected", text, cause, broker=after.controller_id, is_harmless=True),
        _log,
    )
    led = {each.leader for topic in found.topics.values() for each in topic.partitions.values()}
    for broker_id in sorted(led.difference(after.brokers, [NO_LEADER])):
        was_live = broker_id in known_live
        what = "has failed" if was_live else "has not registered"
        absence = _absence(broker_id, what, found, after)
        events.add(
            absence._replace(cause=_NOT_REGISTERED, is_warning=was_live and absence.is_warning),
            _log,
        )


def log_brokers(
    events: EventLog, before: ClusterImage, after: ClusterImage, losses: Mapping[int, str]
) -> None:
    """Report changes in the set of live brokers. The machine provides the reason for each loss."""
    for broker_id, broker in before.brokers.items():
        now = after.brokers.get(broker_id)
        if now is not None and now.epoch == broker.epoch:
            continue
        what = "has failed" if now is None else "failed and re-registered"
        absence = _absence(broker_id, what, before, after)
        events.add(absence._replace(cause=losses.get(broker_id, "")), _log)
    for broker_id in after.brokers:
        if broker_id not in before.brokers:
            text = f"broker {broker_id} registered; live brokers: {len(after.brokers)}"
            event = Event("broker-registered", text, "it started or reconnected", broker=broker_id)
            events.add(event._replace(is_harmless=True), _log)


def log_changes(events: EventLog, controller_id: int, decision: Decision) -> None:
    """Report the partitions whose leader, ISR or replicas have been changed by a decision."""
    epoch = decision.image.controller_epoch
    moved = [each for each in decision.changes if _is_move(each)]
    lines = reassignment_lines(
        controller_id, [(each.name, each.was, each.became) for each in moved]
    )
    report(events, _log, lines, moved, partial(_move_event, controller_id))
    elected = [
        each
        for each in decision.changes
        if each.was.leader != each.became.leader
        or (set(each.was.isr) != set(each.became.isr) and not _is_move(each))
    ]
    who = f"[Controller id={controller_id} epoch={epoch}]"
    lines = election_lines(who, elected)
    report(events, _log, lines, elected, partial(_election_event, who))


def log_topics(
    context: ControllerContext, image: ClusterImage, kind: Kind, names: Iterable[str]
) -> None:
    """Report topics that have been created, enlarged or deleted.

    Topics that were changed by the same request are reported in a single log line.
    """
    what, unknown = _TOPICS[kind]
    by_cause: dict[str, list[str]] = {}
    for name in names:
        cause = context.causes.take(_key(kind, name, image)) or unknown
        by_cause.setdefault(cause, []).append(name)
    left = MOST_EVENTS
    for cause, some in by_cause.items():
        shown = ", ".join(some[:3]) + (f" and {len(some) - 3} more" if len(some) > 3 else "")
        _log.info("[Controller id=%d] %s: %s: %s", image.controller_id, what, shown, cause)
        for name in some[:left]:
            topic = image.topics.get(name)
            size = f" with {counted(len(topic.partitions), 'partition')}" if topic else ""
            text = f"[Controller id={image.controller_id}] {what}: {name}{size}: {cause}"
            event = Event(kind, text, cause, topic=name, is_harmless=kind != "topic-deleted")
            context.events.add(event)
        left -= min(left, len(some))


def _key(kind: Kind, name: str, image: ClusterImage) -> Key:
    topic = image.topics.get(name)
    if topic is None or kind == "topic-deleted":
        return deletion_key(name)
    is_new = kind == "topic-created"
    return topic.topic_id if is_new else growth_key(name, len(topic.partitions))


_TOPICS = {
    "topic-created": (
        "New topics",
        "another broker or a tool created its node in the metadata store",
    ),
    "partitions-added": (
        "New partitions of topics",
        "another broker or a tool changed its node in the metadata store",
    ),
    "topic-deleted": (
        "Deleted topics",
        "another broker, a tool or an earlier controller requested its deletion",
    ),
}


def _is_move(change: PartitionChange) -> bool:
    was, became = change.was, change.became
    return (was.adding, was.removing, was.replicas) != (
        became.adding,
        became.removing,
        became.replicas,
    )


def _move_event(controller_id: int, change: PartitionChange) -> Event:
    name = change.name
    lines = reassignment_lines(controller_id, [(name, change.was, change.became)])
    text = lines[0] if lines else f"[Controller id={controller_id}] Reassignment of {name} changed"
    return Event("reassignment", text, change.cause, name.topic, name.partition, is_harmless=True)


def _election_event(who: str, change: PartitionChange) -> Event:
    was, became = change.was, change.became
    kind: Kind = "isr-shrink" if set(was.isr) - set(became.isr) else "isr-expand"
    if was.leader != became.leader:
        kind = "election"
    is_offline = became.leader == NO_LEADER
    return Event(
        kind,
        election_line(who, change),
        change.cause,
        change.name.topic,
        change.name.partition,
        broker=became.leader,
        is_harmless=False if is_offline or change.is_unclean else None,
        advice=_OFFLINE if is_offline else "",
        is_warning=is_offline or change.is_unclean,
    )


def _absence(broker_id: int, what: str, before: ClusterImage, after: ClusterImage) -> Event:
    elected = leaderless = 0
    for was, became in _led_by(broker_id, before, after):
        if became.leader == NO_LEADER:
            leaderless += 1
        elif became.leader_epoch != was.leader_epoch:
            elected += 1
    return Event(
        "broker-failed",
        f"broker {broker_id} {what}: partitions with a new leader: {elected}, "
        f"with none: {leaderless}",
        broker=broker_id,
        is_harmless=not leaderless and not elected,
        advice=_OFFLINE if leaderless else "",
        # If the broker was not the leader of any partition, clients do not notice its failure.
        is_warning=bool(elected or leaderless),
    )


def _led_by(
    broker_id: int, before: ClusterImage, after: ClusterImage
) -> Iterator[tuple[PartitionImage, PartitionImage]]:
    """Yield each partition whose leader was this broker, as it was before and after the change."""
    for name, topic in before.topics.items():
        changed = after.topics.get(name)
        if changed is None or changed is topic:
            continue
        for number, was in topic.partitions.items():
            became = changed.partitions.get(number)
            if was.leader == broker_id and became is not None:
                yield was, became
