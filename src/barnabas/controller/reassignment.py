"""Reassigns partitions, that is, moves them to other brokers (KIP-455).

    begin      the topic's node gets all replicas, the new ones (`adding`) and the old ones
               (`removing`); the leader gets a new epoch, in which the new replicas fetch
    complete   when all targets are in sync: one of them leads, the old replicas leave the ISR
               and delete their logs, and then the topic's node has only the targets

The old replicas remain in the topic's node until they have confirmed that their logs are deleted
(see `Departing` in `decision_draft`). If the controller dies before that, the next controller
completes the move once more, so no log is left behind permanently.

While a partition is being moved, it works like any other partition, and any controller can complete
the move, change its targets or cancel it. The replicas are stored in the requested order, so the
first target becomes the preferred leader.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.cluster.image import NEVER_LED, NO_LEADER, PartitionImage
from barnabas.controller.decision_draft import Draft
from barnabas.controller.leader_election import succeed, without
from barnabas.errors import (
    InvalidReplicaAssignment,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition


def reassign(draft: Draft, name: TopicPartition, targets: tuple[int, ...] | None) -> None:
    """Begin to move a partition to the targets. If the targets are None, cancel the current move.

    Raises UnknownTopicOrPartition, NoReassignmentInProgress or InvalidReplicaAssignment. In these
    cases, the draft is unchanged.
    """
    before = draft.get(name)
    if before is None:
        raise UnknownTopicOrPartition(f"partition {name} does not exist")
    origin = _difference(before.replicas, before.adding)
    if targets is None:
        if not before.adding and not before.removing:
            raise NoReassignmentInProgress(f"partition {name} is not being reassigned")
        # KIP-455: when a reassignment is cancelled, the partition gets its earlier replicas back.
        targets = origin
    _check(draft, targets, origin)
    # The targets come first, so that the preferred leader that was requested can be elected as soon
    # as it is in sync.
    replicas = tuple(dict.fromkeys((*targets, *origin)))
    moving = before._replace(
        replicas=replicas,
        adding=_difference(replicas, origin),
        removing=_difference(replicas, targets),
    )
    unneeded = _difference(before.replicas, replicas)
    # There are no records on any replica, so the move can be completed immediately.
    if before.partition_epoch == NEVER_LED:
        draft.put(name, before._replace(replicas=targets, adding=(), removing=()))
        draft.lead(name)
    else:
        _begin(draft, name, moving, unneeded)
    for broker_id in unneeded:
        draft.remove(broker_id, name)


def complete(draft: Draft, name: TopicPartition, *, writes_topic: bool = True) -> bool:
    """Complete the reassignment if every target replica is in sync and one of them can lead.

    The partition must have a leader, so elect one before calling this.
    """
    partition = draft.get(name)
    assert partition is not None
    if not draft.has_leader(partition):
        return False
    targets = _difference(partition.replicas, partition.removing)
    # KIP-455: the old replicas are not removed before every target is in sync.
    if not set(targets).issubset(partition.isr):
        return False
    leader = _leader_among(draft, partition, targets)
    if leader == NO_LEADER:
        return False
    earlier = draft.because
    draft.because = "all target replicas of the reassignment are in sync"
    removing = partition.removing
    partition = partition._replace(replicas=targets, adding=(), removing=())
    partition = succeed(partition, leader, partition.isr, draft.epoch)
    draft.change(name, partition)
    for replica in removing:
        if replica in partition.isr:
            partition = without(partition, replica, draft.epoch)
            draft.change(name, partition)
    for replica in removing:
        draft.remove(replica, name)
    departing = draft.departing(name)
    # The node lists the brokers that are leaving, and is written again when they have left. It must
    # not list a broker that is gone, because no broker would wait for it.
    if writes_topic and (not departing or not set(removing).issubset(departing)):
        draft.write_topic(name.topic)
    draft.because = earlier
    return True


def _check(draft: Draft, targets: tuple[int, ...], origin: tuple[int, ...]) -> None:
    if not targets:
        raise InvalidReplicaAssignment("a partition needs at least one replica")
    if len(set(targets)) < len(targets):
        raise InvalidReplicaAssignment("a broker is listed twice")
    if min(targets) < 0:
        raise InvalidReplicaAssignment(f"{min(targets)} is not a broker id")
    missing = sorted(set(targets).difference(origin).difference(draft.electable))
    # The new replicas must be live, but the existing ones may be offline.
    if missing:
        raise InvalidReplicaAssignment(f"brokers {missing} are not live")


def _begin(
    draft: Draft, name: TopicPartition, moving: PartitionImage, unneeded: tuple[int, ...]
) -> None:
    """Begin the move. First remove the `unneeded` replicas, which an earlier request added."""
    partition = moving
    leader = moving.leader
    if leader in unneeded or not _difference(moving.isr, unneeded):
        leader = _leader_among(draft, moving, moving.replicas)
        if leader == NO_LEADER:
            raise InvalidReplicaAssignment(
                f"only {list(moving.isr)} are in sync for partition {name}, so they cannot be "
                "removed yet"
            )
    draft.put(name, partition)
    if leader != partition.leader:
        partition = succeed(partition, leader, partition.isr, draft.epoch)
        draft.change(name, partition)
    for replica in unneeded:
        if replica in partition.isr:
            partition = without(partition, replica, draft.epoch)
            draft.change(name, partition)
    if not complete(draft, name, writes_topic=False):
        draft.change(name, succeed(partition, partition.leader, partition.isr, draft.epoch))
        draft.notify(name, new=moving.adding)


def _leader_among(draft: Draft, partition: PartitionImage, targets: tuple[int, ...]) -> int:
    """Return the leader if it is a live target, otherwise the first target that can lead."""
    if partition.leader in targets and draft.has_leader(partition):
        return partition.leader
    for replica in targets:
        if (
            replica in partition.isr
            and replica in draft.electable
            and replica not in partition.offline_replicas
        ):
            return replica
    return NO_LEADER


def _difference(replicas: Iterable[int], others: Iterable[int]) -> tuple[int, ...]:
    others = set(others)
    return tuple(replica for replica in replicas if replica not in others)
