"""Logs the controller's state changes: elections, failed and new brokers, and reassignments."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Iterator

from barnabas.broker.state_changes import reassignment_lines
from barnabas.cluster.image import NO_LEADER, ClusterImage, PartitionImage
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


def log_election(found: ClusterImage, after: ClusterImage, known_live: Container[int]) -> None:
    """Log that this broker has been elected; `found` is the cluster before its first decision.

    `known_live` contains the brokers that this broker has seen live; other leaders may not have
    started yet, for example when the whole cluster restarts.
    """
    _log.info(
        "controller elected in epoch %d: broker %d; live brokers: %d, topics: %d",
        after.controller_epoch,
        after.controller_id,
        len(after.brokers),
        len(after.topics),
    )
    led = {each.leader for topic in found.topics.values() for each in topic.partitions.values()}
    for broker_id in sorted(led.difference(after.brokers, [NO_LEADER])):
        was_live = broker_id in known_live
        event = "has failed" if was_live else "has not registered"
        _log_absence(broker_id, event, found, after, is_failure=was_live)


def log_brokers(before: ClusterImage, after: ClusterImage) -> None:
    """Log changes to the list of live brokers."""
    for broker_id, broker in before.brokers.items():
        now = after.brokers.get(broker_id)
        if now is not None and now.epoch == broker.epoch:
            continue
        event = "has failed" if now is None else "failed and re-registered"
        _log_absence(broker_id, event, before, after, is_failure=True)
    for broker_id in after.brokers:
        if broker_id not in before.brokers:
            _log.info("broker %d registered; live brokers: %d", broker_id, len(after.brokers))


def log_reassignments(
    names: Iterable[TopicPartition], before: ClusterImage, after: ClusterImage
) -> None:
    """Log which of these partitions' reassignments have begun or ended (KIP-455)."""
    steps = []
    for name in names:
        was, became = _partition(before, name), _partition(after, name)
        if was is not None and became is not None:
            steps.append((name, was, became))
    for line in reassignment_lines(after.controller_id, steps):
        _log.info("%s", line)


def _partition(image: ClusterImage, name: TopicPartition) -> PartitionImage | None:
    topic = image.topics.get(name.topic)
    return None if topic is None else topic.partitions.get(name.partition)


def _log_absence(
    broker_id: int, event: str, before: ClusterImage, after: ClusterImage, *, is_failure: bool
) -> None:
    elected = leaderless = 0
    for was, became in _led_by(broker_id, before, after):
        if became.leader == NO_LEADER:
            leaderless += 1
        elif became.leader_epoch != was.leader_epoch:
            elected += 1
    _log.log(
        # If the broker led no partitions, clients do not notice the failure.
        logging.WARNING if is_failure and (elected or leaderless) else logging.INFO,
        "broker %d %s: partitions with a new leader: %d, with none: %d",
        broker_id,
        event,
        elected,
        leaderless,
    )


def _led_by(
    broker_id: int, before: ClusterImage, after: ClusterImage
) -> Iterator[tuple[PartitionImage, PartitionImage]]:
    """Yield each partition that a broker led, before and after the change."""
    for name, topic in before.topics.items():
        changed = after.topics.get(name)
        if changed is None or changed is topic:
            continue
        for number, was in topic.partitions.items():
            became = changed.partitions.get(number)
            if was.leader == broker_id and became is not None:
                yield was, became
