"""Moving a partition to other brokers (KIP-455).

    begin      the topic's node gets all replicas, the coming ones (`adding`) and the going ones
               (`removing`); the leader gets a new epoch, in which the coming ones fetch
    complete   when all targets are in sync: one of them leads, the going ones leave the ISR, the
               topic's node has the targets alone, and the going ones delete what they have

In between nothing differs from any other partition: any controller can complete it, or give it
other targets, or take it back. The replicas' order is that of the wish, so its first leads one day.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.cluster.image import NEVER_LED, NO_LEADER, PartitionImage
from barnabas.controller.draft import Draft
from barnabas.controller.leader_election import succeed, without
from barnabas.errors import (
    InvalidReplicaAssignment,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition


def wish(draft: Draft, name: TopicPartition, targets: tuple[int, ...] | None) -> None:
    """Begin to move a partition there, or (None) take back what has begun.

    Raises UnknownTopicOrPartition, NoReassignmentInProgress, InvalidReplicaAssignment; then the
    draft is as it was.
    """
    before = draft.get(name)
    if before is None:
        raise UnknownTopicOrPartition(f"partition {name} does not exist")
    origin = _difference(before.replicas, before.adding)
    if targets is None:
        if not before.adding and not before.removing:
            raise NoReassignmentInProgress(f"partition {name} is not being reassigned")
        targets = origin
    _check(draft, targets, origin)
    replicas = tuple(dict.fromkeys((*targets, *origin)))
    moving = before._replace(
        replicas=replicas,
        adding=_difference(replicas, origin),
        removing=_difference(replicas, targets),
    )
    unneeded = _difference(before.replicas, replicas)
    if before.partition_epoch == NEVER_LED:
        draft.put(name, before._replace(replicas=targets, adding=(), removing=()))
        draft.lead(name)
    else:
        _begin(draft, name, moving, unneeded)
    for broker_id in unneeded:
        draft.stop(broker_id, name, delete=True)


def complete(draft: Draft, name: TopicPartition, *, writes_topic: bool = True) -> bool:
    """Finish the move, if all of its targets are in sync and one of them can lead.

    Where nobody leads, an election comes first: it knows whom the ISR makes a leader, and whom not.
    """
    partition = draft.get(name)
    assert partition is not None
    if not draft.has_leader(partition):
        return False
    targets = _difference(partition.replicas, partition.removing)
    if not set(targets).issubset(partition.isr):
        return False
    leader = _leader_among(draft, partition, targets)
    if leader == NO_LEADER:
        return False
    removing = partition.removing
    partition = partition._replace(replicas=targets, adding=(), removing=())
    partition = succeed(partition, leader, partition.isr, draft.epoch)
    draft.change(name, partition)
    for replica in removing:
        if replica in partition.isr:
            partition = without(partition, replica, draft.epoch)
            draft.change(name, partition)
    if writes_topic:
        draft.write_topic(name.topic)
    for replica in removing:
        draft.stop(replica, name, delete=True)
    return True


def _check(draft: Draft, targets: tuple[int, ...], origin: tuple[int, ...]) -> None:
    if not targets:
        raise InvalidReplicaAssignment("a partition needs at least one replica")
    if len(set(targets)) < len(targets):
        raise InvalidReplicaAssignment("a broker is named twice")
    if min(targets) < 0:
        raise InvalidReplicaAssignment(f"{min(targets)} is no id of a broker")
    missing = sorted(set(targets).difference(origin).difference(draft.electable))
    if missing:
        raise InvalidReplicaAssignment(f"brokers {missing} do not live")


def _begin(
    draft: Draft, name: TopicPartition, moving: PartitionImage, unneeded: tuple[int, ...]
) -> None:
    """Replicas that an older wish had brought are no longer needed, and leave first."""
    partition = moving
    leader = moving.leader
    if leader in unneeded or not _difference(moving.isr, unneeded):
        leader = _leader_among(draft, moving, moving.replicas)
        if leader == NO_LEADER:
            raise InvalidReplicaAssignment(
                f"of partition {name} only {list(moving.isr)} are in sync: they cannot go yet"
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
        draft.tell(name, new=moving.adding)


def _leader_among(draft: Draft, partition: PartitionImage, targets: tuple[int, ...]) -> int:
    """Who leads it now, if it is one of these and lives; else the first of them that may."""
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
