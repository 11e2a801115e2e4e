"""Leaders and ISRs after brokers fail, start or shut down, and after a controller failover.

A failed broker leaves every ISR but those of which it is the last member, and another member leads
in its place. A restarted one follows until leaders take it into their ISRs again. A broker with a
changed registration has restarted, even if that went unseen: it may have lost what the ISR implies
that it has (KIP-903). A broker that shuts down in a controlled way hands over first: others lead
before it stops, and no ISR waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from barnabas.cluster.image import NEVER_LED, NO_LEADER, PartitionImage
from barnabas.controller import reassignment
from barnabas.controller.decision_draft import Draft
from barnabas.controller.leader_election import elect, hand_over, leader_last, without
from barnabas.controller.lost_log_ends import distrust
from barnabas.types import TopicPartition


def brokers_changed(draft: Draft, gone: Set[int], come: Set[int], trusted: Set[int]) -> None:
    """Some registrations ended (`gone`), some are new (`come`), and some warn of lost records no
    more (`trusted`): what waited for that gets a leader. The draft has the live brokers."""
    staying = draft.electable - come
    touched = gone | come | trusted
    for topic in draft.topics():
        for number, partition in topic.partitions.items():
            # Offline replicas stay listed after a move to other brokers, until theirs is gone.
            if touched.isdisjoint((*partition.replicas, *partition.offline_replicas)):
                continue
            name = TopicPartition(topic.name, number)
            if gone:
                partition = _fail(draft, name, partition, gone, staying)
            if partition.leader == NO_LEADER:
                draft.lead(name)  # from the new brokers, or uncleanly if allowed
            if partition.adding or partition.removing:
                reassignment.complete(draft, name)
    for topic in draft.topics_to_go():
        # Their replicas are deleted when the broker is back with its directories.
        for number, partition in topic.partitions.items():
            _reach_again(draft, TopicPartition(topic.name, number), partition, gone)


def fail_over(draft: Draft, name: TopicPartition, doubtful: Set[int]) -> None:
    """Bring one partition up to date under a new controller."""
    partition = draft.get(name)
    assert partition is not None
    # Before the dead leave: the member that stays behind must be one that can be trusted, if any
    # can.
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
    """Take replicas out of their ISRs which a live broker has lost with a log directory."""
    for name in names:
        partition = draft.get(name)
        if partition is None or broker_id in partition.offline_replicas:
            continue  # deleted in the meantime, or reported before
        offline = (*partition.offline_replicas, broker_id)
        partition = partition._replace(offline_replicas=offline)
        draft.put(name, partition)
        if broker_id not in partition.isr or partition.leader == NO_LEADER:
            continue
        # The ISR without the failed replica and the new leader are one step, as for a broker that
        # fails.
        elected = elect(partition, draft.electable, draft.epoch)
        draft.change(name, elected or without(partition, broker_id, draft.epoch))
        draft.lead(name)  # uncleanly if allowed


def replicas_online(draft: Draft, broker_id: int, names: Iterable[TopicPartition]) -> None:
    """Count these replicas again: a live broker hosts what it had lost."""
    for name in names:
        partition = draft.get(name)
        if partition is None or broker_id not in partition.offline_replicas:
            continue  # deleted in the meantime, or reported before
        partition = _reach_again(draft, name, partition, {broker_id})
        if partition.leader == NO_LEADER:
            draft.lead(name)
        if partition.adding or partition.removing:
            reassignment.complete(draft, name)


def leave(draft: Draft, broker_id: int) -> list[TopicPartition]:
    """Move what can be moved; returns the partitions of several replicas that it still leads."""
    remaining = []
    for topic in draft.topics():
        for number, partition in topic.partitions.items():
            # As in Kafka, a partition of one replica stays where it is: no other broker can lead
            # it.
            if broker_id not in partition.replicas or len(partition.replicas) == 1:
                continue
            if partition.partition_epoch == NEVER_LED:
                continue
            name = TopicPartition(topic.name, number)
            if partition.leader == broker_id:
                moved = hand_over(partition, draft.electable, draft.epoch)
                if moved is None:
                    remaining.append(name)
                else:
                    draft.change(name, moved)
                continue
            # It stops fetching, or its leader would take it into the ISR again.
            draft.stop(broker_id, name, delete=False)
            if broker_id in partition.isr and len(partition.isr) > 1:
                draft.change(name, without(partition, broker_id, draft.epoch))
    return remaining


def _fail(
    draft: Draft,
    name: TopicPartition,
    partition: PartitionImage,
    gone: Set[int],
    staying: Set[int],
) -> PartitionImage:
    """The partition without these brokers, led by one that stays."""
    partition = _reach_again(draft, name, partition, gone)
    if partition.leader in gone:
        elected = elect(partition, staying, draft.epoch)
        if elected is not None:
            draft.change(name, elected)
            return elected
    elif gone.isdisjoint(partition.isr):
        return partition
    if partition.leader == NO_LEADER and len(partition.isr) == 1:
        return partition  # it was waited for, and has failed again
    leaving = [replica for replica in partition.isr if replica in gone]
    for replica in leader_last(partition, leaving):
        partition = without(partition, replica, draft.epoch)
        draft.change(name, partition)
    return partition


def _reach_again(
    draft: Draft, name: TopicPartition, partition: PartitionImage, gone: Set[int]
) -> PartitionImage:
    """The partition without the offline replicas of brokers that are gone, or host them again."""
    if gone.isdisjoint(partition.offline_replicas):
        return partition
    offline = tuple([each for each in partition.offline_replicas if each not in gone])
    partition = partition._replace(offline_replicas=offline)
    draft.put(name, partition)
    return partition
