"""What an operator is told when brokers go or come, and when partitions move: a line for each."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from barnabas.broker.state_changes import reassignment_lines
from barnabas.cluster.image import NO_LEADER, ClusterImage, PartitionImage
from barnabas.types import TopicPartition

_log = logging.getLogger(__name__)


def tell_of_office(found: ClusterImage, after: ClusterImage) -> None:
    """What a new controller has found, and what it has made of it."""
    _log.info(
        "broker %d is the controller, in epoch %d: %d brokers are live, there are %d topics",
        after.controller_id,
        after.controller_epoch,
        len(after.brokers),
        len(after.topics),
    )
    led = {each.leader for topic in found.topics.values() for each in topic.partitions.values()}
    for broker_id in sorted(led.difference(after.brokers, [NO_LEADER])):
        _tell_of_loss(broker_id, "is dead", found, after)


def tell_of_brokers(before: ClusterImage, after: ClusterImage) -> None:
    """The difference that another list of live brokers has made."""
    for broker_id, broker in before.brokers.items():
        now = after.brokers.get(broker_id)
        if now is not None and now.epoch == broker.epoch:
            continue
        what = "has gone" if now is None else "has gone and come back"
        _tell_of_loss(broker_id, what, before, after)
    for broker_id in after.brokers:
        if broker_id not in before.brokers:
            _log.info("broker %d has come, %d are live", broker_id, len(after.brokers))


def tell_of_moves(
    names: Iterable[TopicPartition], before: ClusterImage, after: ClusterImage
) -> None:
    """Of these partitions, which have begun or ended to move to other brokers (KIP-455)."""
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


def _tell_of_loss(broker_id: int, what: str, before: ClusterImage, after: ClusterImage) -> None:
    elected = leaderless = 0
    for was, became in _led_by(broker_id, before, after):
        if became.leader == NO_LEADER:
            leaderless += 1
        elif became.leader_epoch != was.leader_epoch:
            elected += 1
    _log.log(
        logging.WARNING if elected or leaderless else logging.INFO,
        "broker %d %s: %d partitions elected anew, %d without a leader",
        broker_id,
        what,
        elected,
        leaderless,
    )


def _led_by(
    broker_id: int, before: ClusterImage, after: ClusterImage
) -> Iterator[tuple[PartitionImage, PartitionImage]]:
    """What a broker led, before and after."""
    for name, topic in before.topics.items():
        changed = after.topics.get(name)
        if changed is None or changed is topic:
            continue
        for number, was in topic.partitions.items():
            became = changed.partitions.get(number)
            if was.leader == broker_id and became is not None:
                yield was, became
