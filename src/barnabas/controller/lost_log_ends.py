"""Handles elections in which a broker may have lost the end of its logs.

The ISR lists the replicas that had every acknowledged record. A broker whose machine went down (a
power failure, a kernel crash) may have lost records that it had not flushed, and indicates this
when it registers. From then on, until a leader has added it to the ISR again:

    others in the ISR      it leaves; if they are all dead, the partition waits for one of them
    alone in the ISR       where two replicas had every committed record, all are asked for their
                           log ends, and the largest (epoch, end offset) leads;
                           otherwise it leads immediately, as in Kafka

The reasons are in docs/decisions/0014-who-may-have-lost-its-end-does-not-lead-by-the-isr.md.
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
    """A replica's log end: the last batch's epoch (-1 if the log is empty), and the LEO.

    `broker_epoch` identifies the registration of the broker that was asked; -1 if unknown. A broker
    that has since re-registered may have lost these records.
    """

    epoch: int
    end_offset: int
    broker_epoch: int = -1


Ends = Mapping[TopicPartition, Mapping[int, LogEnd]]
"""The log ends of partitions, by partition and broker."""


def distrust(
    partition: PartitionImage, doubtful: Container[int], controller_epoch: int
) -> PartitionImage | None:
    """Return the partition without these members in its ISR; None if nothing changes.

    If all members are doubtful, one of them remains in the ISR, but that does not make it the
    leader.
    """
    if len(partition.replicas) == 1 or not any(each in doubtful for each in partition.isr):
        return None
    isr = tuple([replica for replica in partition.isr if replica not in doubtful])
    leader = partition.leader if partition.leader in isr else NO_LEADER
    if not isr:
        # KIP-966: the ISR never becomes empty. The last leader had every acknowledged record, so it
        # is the best of those that may have lost records.
        last_led = partition.leader in partition.isr
        isr = (partition.leader,) if last_led else partition.isr[:1]
        if isr == partition.isr and partition.leader == NO_LEADER:
            return None
    return succeed(partition, leader, isr, controller_epoch)


def is_in_doubt(partition: PartitionImage, brokers: Mapping[int, BrokerImage]) -> bool:
    """Return whether no one leads and the last ISR member, now back, may have lost its log end."""
    if partition.leader != NO_LEADER or partition.partition_epoch == NEVER_LED:
        return False
    if len(partition.isr) != 1 or len(partition.replicas) == 1:
        return False
    last = brokers.get(partition.isr[0])
    return last is not None and last.may_have_lost


def waits_for_ends(topic: TopicImage, settings: Settings) -> bool:
    """Return whether a partition in doubt waits until every replica's log end is known."""
    # With one replica in sync, acks=all guarantees no second copy, so asking the others proves
    # nothing. Where unclean elections are allowed, availability comes first.
    return settings.min_insync_of(topic) >= 2 and not settings.is_unclean_allowed_for(topic)


def largest(partition: PartitionImage, ends: Mapping[int, LogEnd]) -> int | None:
    """Return the replica with the largest log end (the first if equal); None if one is unknown."""
    if any(replica not in ends for replica in partition.replicas):
        return None
    # Compare epochs first: in a later epoch, even a shorter log has everything that its leader
    # acknowledged (KIP-101).
    return max(partition.replicas, key=lambda replica: ends[replica][:2])


class KnownEnds:
    """Known log ends. Each is valid until a leader is elected or its broker re-registers."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        # Stored with a leader epoch in which no replica leads; once one does, logs grow and the
        # ends are obsolete.
        self._ends: dict[TopicPartition, tuple[int, dict[int, LogEnd]]] = {}

    def add(self, draft: Draft, name: TopicPartition, reported: Mapping[int, LogEnd]) -> None:
        """Store these brokers' log ends, except those from other registrations."""
        partition = draft.get(name)
        assert partition is not None
        epoch, ends = self._ends.get(name, (partition.leader_epoch, {}))
        if epoch != partition.leader_epoch:
            ends = {}
        for broker_id, end in reported.items():
            broker = draft.brokers.get(broker_id)
            # KIP-903: ignore a response from before a restart.
            if broker is not None and end.broker_epoch in (-1, broker.epoch):
                ends[broker_id] = end._replace(broker_epoch=broker.epoch)
        self._ends[name] = (partition.leader_epoch, ends)

    def lead_by(self, draft: Draft, name: TopicPartition) -> None:
        """Elect the replica with the largest log end, if all ends are known."""
        partition = draft.get(name)
        assert partition is not None
        _, ends = self._ends[name]
        valid = {
            replica: end
            for replica, end in ends.items()
            if replica in draft.brokers and draft.brokers[replica].epoch == end.broker_epoch
        }
        leader = largest(partition, valid)
        # Wait for this replica, because any other may lack records that it has.
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
