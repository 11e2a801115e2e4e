"""Brokers that go and come, and what a new controller finds: who leads then, who is in sync.

A broker that goes leaves every ISR but those of which it is the last member; what it led is led by
another member. One that is back follows, until leaders take it into their ISRs again. A broker
whose registration is another one has gone and come, even if nobody saw it: it may have lost what
the ISR says that it has (KIP-903).
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from barnabas.cluster.image import NO_LEADER, PartitionImage
from barnabas.controller import reassignment
from barnabas.controller.draft import Draft
from barnabas.controller.guard import distrust
from barnabas.controller.leader_election import elect, leader_last, without
from barnabas.types import TopicPartition


def brokers_changed(draft: Draft, gone: Set[int], come: Set[int]) -> None:
    """These registrations are over, these are new; the draft's brokers are those that live now."""
    staying = draft.electable - come
    touched = gone | come
    for topic in draft.topics():
        for number, partition in topic.partitions.items():
            # What is known of directories outlasts a move to other brokers, and ends as all does.
            if touched.isdisjoint((*partition.replicas, *partition.offline_replicas)):
                continue
            name = TopicPartition(topic.name, number)
            if gone:
                partition = _fail(draft, name, partition, gone, staying)
            if partition.leader == NO_LEADER:
                draft.lead(name)  # by who has come, or uncleanly, if that is allowed
            if partition.adding or partition.removing:
                reassignment.complete(draft, name)
    for topic in draft.topics_to_go():
        # Their replicas are deleted when the broker is back, with its directories.
        for number, partition in topic.partitions.items():
            _reach_again(draft, TopicPartition(topic.name, number), partition, gone)


def take_office(draft: Draft, name: TopicPartition, doubtful: Set[int]) -> None:
    """One partition as a new controller finds it: what happened while there was none."""
    partition = draft.get(name)
    assert partition is not None
    trusted = distrust(partition, doubtful, draft.epoch)
    if trusted is not None:
        draft.change(name, trusted)
        partition = trusted
    dead = [replica for replica in partition.isr if replica not in draft.brokers]
    for replica in leader_last(partition, dead):
        partition = without(partition, replica, draft.epoch)
        draft.change(name, partition)
    draft.lead(name)
    if partition.adding or partition.removing:
        reassignment.complete(draft, name)


def replicas_offline(draft: Draft, broker_id: int, names: Iterable[TopicPartition]) -> None:
    """A live broker has lost these replicas with a log directory."""
    for name in names:
        partition = draft.get(name)
        if partition is None or broker_id in partition.offline_replicas:
            continue  # deleted in the meantime, or said before
        offline = (*partition.offline_replicas, broker_id)
        partition = partition._replace(offline_replicas=offline)
        draft.put(name, partition)
        if broker_id not in partition.isr or partition.leader == NO_LEADER:
            continue
        elected = elect(partition, draft.electable, draft.epoch)
        draft.change(name, elected or without(partition, broker_id, draft.epoch))
        draft.lead(name)  # uncleanly, if that is allowed


def _fail(
    draft: Draft,
    name: TopicPartition,
    partition: PartitionImage,
    gone: Set[int],
    staying: Set[int],
) -> PartitionImage:
    """The partition when these brokers are gone, and who stays leads it."""
    partition = _reach_again(draft, name, partition, gone)
    if partition.leader in gone:
        elected = elect(partition, staying, draft.epoch)
        if elected is not None:
            draft.change(name, elected)
            return elected
    elif gone.isdisjoint(partition.isr):
        return partition
    if partition.leader == NO_LEADER and len(partition.isr) == 1:
        return partition  # it has been waited for, and is gone again
    leaving = [replica for replica in partition.isr if replica in gone]
    for replica in leader_last(partition, leaving):
        partition = without(partition, replica, draft.epoch)
        draft.change(name, partition)
    return partition


def _reach_again(
    draft: Draft, name: TopicPartition, partition: PartitionImage, gone: Set[int]
) -> PartitionImage:
    """The partition without what was known of log directories in lives that are over."""
    if gone.isdisjoint(partition.offline_replicas):
        return partition
    offline = tuple([each for each in partition.offline_replicas if each not in gone])
    partition = partition._replace(offline_replicas=offline)
    draft.put(name, partition)
    return partition
