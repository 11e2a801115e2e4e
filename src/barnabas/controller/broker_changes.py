"""Updates leaders and ISRs after brokers have failed, started or shut down, and after a failover.

When a broker fails, it is removed from every ISR in which it is not the last member, and another
member takes over each partition that it led. When a broker restarts, it is a follower until the
leaders add it to their ISRs again. If the registration of a broker has changed, the broker has
restarted, even if no broker noticed its absence, and may have lost records that an ISR member must
have (KIP-903). In a controlled shutdown, leadership moves to other brokers before the broker stops,
and no ISR waits for it.
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
    """Elect leaders for the partitions that are affected by a change of the live brokers.

    The draft contains the current live brokers.

    `gone` are the brokers whose registration has ended, `come` are the brokers that have just
    registered, and `trusted` are the brokers that no longer warn that they may have lost records.
    """
    staying = draft.electable - come
    touched = gone | come | trusted
    for topic in draft.topics():
        for number, partition in topic.partitions.items():
            # After a partition has moved to other brokers, its offline replicas are listed until
            # their broker is gone.
            if touched.isdisjoint((*partition.replicas, *partition.offline_replicas)):
                continue
            name = TopicPartition(topic.name, number)
            draft.because = _why(draft, partition, gone, come, trusted)
            if gone:
                partition = _fail(draft, name, partition, gone, staying)
            if partition.leader == NO_LEADER:
                draft.lead(name)  # a new broker, or an unclean leader if allowed
            if partition.adding or partition.removing:
                reassignment.complete(draft, name)
    for topic in draft.topics_to_go():
        # The broker will delete these replicas when its log directories are available again.
        for number, partition in topic.partitions.items():
            _reach_again(draft, TopicPartition(topic.name, number), partition, gone)


def fail_over(draft: Draft, name: TopicPartition, doubtful: Set[int]) -> None:
    """Update a partition after a failover to a new controller."""
    partition = draft.get(name)
    assert partition is not None
    dead = [replica for replica in partition.isr if replica not in draft.brokers]
    draft.because = f"controller {draft.image.controller_id} took over"
    if dead:
        draft.because += f" and found {_brokers(dead)} not registered"
    # This comes before dead brokers are removed from the ISR, because if any member can be trusted,
    # the member that remains must be a trusted one.
    trusted = distrust(partition, doubtful, draft.epoch)
    if trusted is not None:
        lossy = [replica for replica in partition.isr if replica in doubtful]
        draft.because += f"; {_brokers(lossy)} may have lost records"
        draft.change(name, trusted)
        partition = trusted
    dead = [replica for replica in dead if replica in partition.isr]
    for replica in leader_last(partition, dead):
        partition = without(partition, replica, draft.epoch)
        draft.change(name, partition)
    draft.lead(name)
    if partition.adding or partition.removing:
        reassignment.complete(draft, name)


def replicas_offline(draft: Draft, broker_id: int, names: Iterable[TopicPartition]) -> None:
    """Remove replicas from their ISRs because a log directory of a live broker has failed."""
    draft.because = f"broker {broker_id} lost its replica with a log directory or a damaged log"
    for name in names:
        partition = draft.get(name)
        if partition is None or broker_id in partition.offline_replicas:
            continue  # deleted in the meantime, or already reported
        offline = (*partition.offline_replicas, broker_id)
        partition = partition._replace(offline_replicas=offline)
        draft.put(name, partition)
        if broker_id not in partition.isr or partition.leader == NO_LEADER:
            continue
        # The failed replica leaves the ISR and the new leader is elected in one step, as after the
        # failure of a broker.
        elected = elect(partition, draft.electable, draft.epoch)
        draft.change(name, elected or without(partition, broker_id, draft.epoch))
        draft.lead(name)  # this election may be unclean, if that is allowed


def replicas_online(draft: Draft, broker_id: int, names: Iterable[TopicPartition]) -> None:
    """Treat these replicas as available, because they are hosted by a live broker again."""
    draft.because = f"broker {broker_id} hosts its replica again"
    for name in names:
        partition = draft.get(name)
        if partition is None or broker_id not in partition.offline_replicas:
            continue  # deleted in the meantime, or already reported
        partition = _reach_again(draft, name, partition, {broker_id})
        if partition.leader == NO_LEADER:
            draft.lead(name)
        if partition.adding or partition.removing:
            reassignment.complete(draft, name)


def leave(draft: Draft, broker_id: int) -> list[TopicPartition]:
    """Move leadership off the broker, and return the replicated partitions that it still leads."""
    draft.because = f"controlled shutdown of broker {broker_id}"
    remaining = []
    for topic in draft.topics():
        for number, partition in topic.partitions.items():
            # As in Kafka, ignore a partition that has only one replica, because no other broker can
            # lead it.
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
            # The broker must stop fetching, because otherwise the leader would add it to the ISR
            # again.
            draft.stop(broker_id, name, delete=False)
            if broker_id in partition.isr and len(partition.isr) > 1:
                draft.change(name, without(partition, broker_id, draft.epoch))
    return remaining


def _why(
    draft: Draft, partition: PartitionImage, gone: Set[int], come: Set[int], trusted: Set[int]
) -> str:
    """Return which brokers of the partition are gone or, if none are, which brokers have registered
    or can be trusted again. The result is empty if none of the replicas is affected.
    """
    replicas = partition.replicas
    losses = [draft.losses[each] for each in replicas if each in gone]
    if losses:
        return ", ".join(losses)
    for brokers, what in ((come, "registered"), (trusted, "withdrew the warning of lost records")):
        concerned = [each for each in replicas if each in brokers]
        if concerned:
            return f"{_brokers(concerned)} {what}"
    return ""


def _brokers(ids: list[int]) -> str:
    return f"broker{'s' * (len(ids) > 1)} {', '.join(map(str, ids))}"


def _fail(
    draft: Draft,
    name: TopicPartition,
    partition: PartitionImage,
    gone: Set[int],
    staying: Set[int],
) -> PartitionImage:
    """Return the partition without the failed brokers. Another replica leads it if possible."""
    partition = _reach_again(draft, name, partition, gone)
    if partition.leader in gone:
        elected = elect(partition, staying, draft.epoch)
        if elected is not None:
            draft.change(name, elected)
            return elected
    elif gone.isdisjoint(partition.isr):
        return partition
    if partition.leader == NO_LEADER and len(partition.isr) == 1:
        return partition  # the last ISR member has failed again
    leaving = [replica for replica in partition.isr if replica in gone]
    for replica in leader_last(partition, leaving):
        partition = without(partition, replica, draft.epoch)
        draft.change(name, partition)
    return partition


def _reach_again(
    draft: Draft, name: TopicPartition, partition: PartitionImage, gone: Set[int]
) -> PartitionImage:
    """Return the partition without the offline replicas that are on the brokers in `gone`."""
    if gone.isdisjoint(partition.offline_replicas):
        return partition
    offline = tuple([each for each in partition.offline_replicas if each not in gone])
    partition = partition._replace(offline_replicas=offline)
    draft.put(name, partition)
    return partition
