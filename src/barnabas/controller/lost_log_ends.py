"""Handles elections in which a broker may have lost the last records of its logs.

The ISR lists the replicas that had every acknowledged record. If a broker's machine goes down
(because of a power failure or a kernel crash), the broker may lose records that it has not flushed,
and says so when it registers again. From then on, until a leader has added the broker to the ISR
again, the following rules apply:

    others in the ISR      the broker leaves the ISR; if all others are dead, the partition waits
                           for one of them
    alone in the ISR       if at least two replicas had every committed record, all replicas are
                           asked for their log ends, and the one with the largest (epoch, end
                           offset) leads; otherwise, the broker leads immediately, as in Kafka

The reasons for these rules are in
docs/decisions/0014-who-may-have-lost-its-end-does-not-lead-by-the-isr.md.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from barnabas.cluster.image import (
    NEVER_LED,
    NO_LEADER,
    BrokerImage,
    PartitionImage,
    TopicImage,
)
from barnabas.controller.leader_election import Settings, succeed
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.controller.decision_draft import Draft


class LogEnd(NamedTuple):
    """The end of a replica's log: the last batch's epoch (-1 if the log is empty), and the LEO.

    `broker_epoch` identifies the registration of the broker that reported the log end, or is -1 if
    unknown. If the broker has registered again since, it may have lost these records.
    """

    epoch: int
    end_offset: int
    broker_epoch: int = -1


Ends = Mapping[TopicPartition, Mapping[int, LogEnd]]
"""The known log ends, by partition and broker."""


def distrust(
    partition: PartitionImage, doubtful: Container[int], controller_epoch: int
) -> PartitionImage | None:
    """Return the partition without these members in its ISR, or None if nothing has to change.

    If no member of the ISR can be trusted, one of them remains, but this does not make it the
    leader.
    """
    if len(partition.replicas) == 1 or not any(each in doubtful for each in partition.isr):
        return None
    isr = tuple([replica for replica in partition.isr if replica not in doubtful])
    leader = partition.leader if partition.leader in isr else NO_LEADER
    if not isr:
        # KIP-966: the ISR never becomes empty. Of the replicas that may have lost records, the last
        # leader is the best choice, because it had every acknowledged record.
        last_led = partition.leader in partition.isr
        isr = (partition.leader,) if last_led else partition.isr[:1]
        if isr == partition.isr and partition.leader == NO_LEADER:
            return None
    return succeed(partition, leader, isr, controller_epoch)


def is_in_doubt(partition: PartitionImage, brokers: Mapping[int, BrokerImage]) -> bool:
    """Return whether there is no leader and the only ISR member, now live, may lack records."""
    if partition.leader != NO_LEADER or partition.partition_epoch == NEVER_LED:
        return False
    if len(partition.isr) != 1 or len(partition.replicas) == 1:
        return False
    last = brokers.get(partition.isr[0])
    return last is not None and last.may_have_lost


def waits_for_ends(topic: TopicImage, settings: Settings) -> bool:
    """Return whether a partition for which `is_in_doubt` is true must wait for all log ends."""
    # If one in-sync replica is enough, acks=all does not guarantee a second copy, so there is no
    # point in asking the other replicas. If unclean elections are allowed, availability is more
    # important.
    return settings.min_insync_of(topic) >= 2 and not settings.is_unclean_allowed_for(topic)


def largest(partition: PartitionImage, ends: Mapping[int, LogEnd]) -> int | None:
    """Return the replica with the largest log end, or None if a log end is unknown.

    If several are equal, the first is returned.
    """
    if any(replica not in ends for replica in partition.replicas):
        return None
    # Compare the epochs first, because the log with the later epoch contains everything that the
    # leader of that epoch acknowledged, even if it is shorter (KIP-101).
    return max(partition.replicas, key=lambda replica: ends[replica][:2])


class KnownEnds:
    """Stores log ends. Each is valid until a leader is elected or the broker registers again."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        # The current leader epoch is stored as well. Once a leader has been elected, the epoch is
        # different, and these log ends are out of date because the logs grow.
        self._ends: dict[TopicPartition, tuple[int, dict[int, LogEnd]]] = {}

    def add(self, draft: Draft, name: TopicPartition, reported: Mapping[int, LogEnd]) -> None:
        """Store the log ends that these brokers reported, except those from old registrations."""
        partition = draft.get(name)
        assert partition is not None
        epoch, ends = self._ends.get(name, (partition.leader_epoch, {}))
        if epoch != partition.leader_epoch:
            ends = {}
        for broker_id, end in reported.items():
            broker = draft.brokers.get(broker_id)
            # KIP-903: the response is ignored if the broker has restarted since.
            if broker is not None and end.broker_epoch in (-1, broker.epoch):
                ends[broker_id] = end._replace(broker_epoch=broker.epoch)
        self._ends[name] = (partition.leader_epoch, ends)

    def lead_by(self, draft: Draft, name: TopicPartition) -> None:
        """If all log ends are known, elect the replica with the largest one."""
        partition = draft.get(name)
        assert partition is not None
        _, ends = self._ends[name]
        valid = {
            replica: end
            for replica, end in ends.items()
            if replica in draft.brokers and draft.brokers[replica].epoch == end.broker_epoch
        }
        leader = largest(partition, valid)
        # Wait until this replica can be elected, because the others may lack some of its records.
        if leader not in draft.electable or leader in partition.offline_replicas:
            return
        if leader not in partition.isr:
            draft.note(
                "led by the replica with the highest log end offset, not by the last in-sync "
                "replica",
                name,
            )
        draft.change(name, succeed(partition, leader, (leader,), draft.epoch))
        del self._ends[name]
