"""Decides on proposed ISRs (AlterPartition), as part of the controller. Below
inter.broker.protocol.version 2.7, leaders write ISRs themselves (RE-9).

Only the leader of the current epoch may propose a change, based on the partition's current state.
It may propose only replicas whose brokers are live in the registration that it sends (KIP-903),
because a broker that has re-registered since may have lost the records that made it eligible. The
checks run in Kafka's order: a proposal that is already fulfilled is answered before its age is
checked, so repeating a proposal is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.cluster.controller_requests import IsrAnswer, IsrMember, IsrProposal
from barnabas.cluster.image import NEVER_LED, PartitionImage
from barnabas.cluster.layout import StateNode
from barnabas.controller import reassignment
from barnabas.controller.decision_draft import Draft
from barnabas.errors import (
    NONE,
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NewLeaderElected,
    NotController,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.named_tuple import NamedTuple
from barnabas.types import TopicPartition

_NO_TOPIC_ID = bytes(16)
_NOT_SENT = -1


class Written(NamedTuple):
    """The content of a state node, with its data version."""

    state: StateNode
    version: int


def take_over(draft: Draft, written: Mapping[TopicPartition, Written]) -> bool:
    """Adopt the ISRs that leaders have written, and return whether any has changed.

    A leader changes only its ISR. Other differences are ignored, because the next write to such a
    node fails with a version conflict, after which everything is read again.
    """
    has_changed = False
    for name, (state, version) in written.items():
        topic = draft.image.topics.get(name.topic)
        before = None if topic is None else topic.partitions.get(name.partition)
        # The partition is unknown here, or the node is no newer than the known state: it was our
        # own write, or was read before.
        if before is None or not NEVER_LED < before.partition_epoch < version:
            continue
        if (state.leader, state.leader_epoch) == (before.leader, before.leader_epoch):
            draft.put(name, before._replace(isr=state.isr, partition_epoch=version))
            has_changed = True
    return has_changed


def notify(draft: Draft, names: Iterable[TopicPartition]) -> None:
    """Send these partitions to all brokers; complete moves that waited for a replica to join."""
    for name in names:
        partition = draft.get(name)
        if partition is None:
            continue  # deleted in the meantime
        draft.put(name, partition)
        if partition.adding or partition.removing:
            reassignment.complete(draft, name)


def decide(
    draft: Draft, broker_id: int, proposals: Mapping[TopicPartition, IsrProposal]
) -> dict[TopicPartition, IsrAnswer]:
    """Write the accepted proposals, and return a response to each of this broker's proposals."""
    return {name: _answer(draft, broker_id, proposal) for name, proposal in proposals.items()}


def _answer(draft: Draft, broker_id: int, proposal: IsrProposal) -> IsrAnswer:
    name = proposal.topic_partition
    try:
        before = _known(draft, proposal)
        isr = tuple(member.broker_id for member in proposal.isr)
        _check_epochs(before, proposal)
        # Accept a proposal that is already fulfilled (perhaps a response was lost), regardless of
        # its partition epoch.
        if isr == before.isr and before.leader == broker_id:
            return _as_it_is(before)
        _check_isr(draft, before, broker_id, proposal)
    except KafkaError as error:
        return IsrAnswer(error.code)
    accepted = before._replace(
        isr=isr, partition_epoch=before.partition_epoch + 1, controller_epoch=draft.epoch
    )
    draft.write(name, accepted)
    # The last target has joined, so the reassignment ends in the same decision (KIP-455).
    if (accepted.adding or accepted.removing) and reassignment.complete(draft, name):
        after = draft.get(name)
        if after is not None and after.leader != broker_id:
            # The proposer no longer leads, so it has no use for the accepted ISR; its LeaderAndIsr
            # follows.
            return IsrAnswer(NewLeaderElected.code)
    return _as_it_is(accepted)


def _known(draft: Draft, proposal: IsrProposal) -> PartitionImage:
    topic_id = proposal.topic_id
    # A leader that does not know the topic id sends zero, so use the name.
    if topic_id != _NO_TOPIC_ID and topic_id not in draft.image.topic_names:
        raise UnknownTopicId
    topic = draft.topic(proposal.topic_partition.topic)
    partition = draft.get(proposal.topic_partition)
    if topic is None or partition is None or partition.partition_epoch == NEVER_LED:
        raise UnknownTopicOrPartition
    # The proposal is about an earlier topic of this name (KIP-516).
    if topic_id not in (_NO_TOPIC_ID, topic.topic_id):
        raise UnknownTopicId
    return partition


def _check_epochs(before: PartitionImage, proposal: IsrProposal) -> None:
    if (
        proposal.partition_epoch > before.partition_epoch
        or proposal.leader_epoch > before.leader_epoch
    ):
        raise NotController  # the leader has a newer state, from a newer controller
    if proposal.leader_epoch < before.leader_epoch:
        raise FencedLeaderEpoch


def _check_isr(draft: Draft, before: PartitionImage, broker_id: int, proposal: IsrProposal) -> None:
    if proposal.partition_epoch < before.partition_epoch:
        raise InvalidUpdateVersion
    isr = [member.broker_id for member in proposal.isr]
    if (
        before.leader != broker_id
        or broker_id not in isr
        or len(set(isr)) < len(isr)
        or not set(isr).issubset(before.replicas)
    ):
        raise InvalidRequest
    if not all(_is_eligible(draft, before, member) for member in proposal.isr):
        raise IneligibleReplica


def _is_eligible(draft: Draft, before: PartitionImage, member: IsrMember) -> bool:
    """Return whether the member is live in that registration and, if new, not shutting down."""
    broker = draft.brokers.get(member.broker_id)
    # The broker is not registered, or its log directory has failed (KIP-112).
    if broker is None or member.broker_id in before.offline_replicas:
        return False
    # KIP-903: below version 3, no epoch is sent, and Kafka does not check any.
    if member.broker_epoch not in (_NOT_SENT, broker.epoch):
        return False
    # RE-13: a broker that is shutting down stays in an ISR until it is removed, but cannot join
    # one.
    return member.broker_id in before.isr or member.broker_id in draft.electable


def _as_it_is(partition: PartitionImage) -> IsrAnswer:
    return IsrAnswer(
        NONE,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.partition_epoch,
    )
