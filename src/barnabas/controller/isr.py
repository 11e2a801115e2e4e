"""Decides on the ISRs that leaders propose to the controller (AlterPartition).

If inter.broker.protocol.version is below 2.7, leaders write the ISRs themselves (RE-9).

Only the leader of the current epoch may propose a change, and the change must be based on the
current state of the partition. A leader may propose only replicas whose brokers are live and have
the same registration as in the proposal (KIP-903), because a broker that has registered again may
have lost the records that made it eligible. The checks are made in the same order as in Kafka: if a
proposal has already been fulfilled, it is accepted before its age is checked, so a proposal can
safely be repeated.
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
    """The content of a state node and its data version."""

    state: StateNode
    version: int


def take_over(draft: Draft, written: Mapping[TopicPartition, Written]) -> bool:
    """Adopt the ISRs that leaders have written. Return whether any ISR has changed.

    A leader writes only its ISR. If anything else differs, it is ignored, because the next write to
    the node will fail with a version conflict, and then everything is read again.
    """
    has_changed = False
    for name, (state, version) in written.items():
        topic = draft.image.topics.get(name.topic)
        before = None if topic is None else topic.partitions.get(name.partition)
        # Either the partition is unknown, or the node is not newer than the known state, because we
        # wrote it ourselves or have already read it.
        if before is None or not NEVER_LED < before.partition_epoch < version:
            continue
        if (state.leader, state.leader_epoch) == (before.leader, before.leader_epoch):
            draft.put(name, before._replace(isr=state.isr, partition_epoch=version))
            has_changed = True
    return has_changed


def notify(draft: Draft, names: Iterable[TopicPartition]) -> None:
    """Send these partitions to all brokers, and complete moves that were waiting for a replica."""
    for name in names:
        partition = draft.get(name)
        if partition is None:
            continue  # its topic has been deleted
        draft.put(name, partition)
        if partition.adding or partition.removing:
            reassignment.complete(draft, name)


def decide(
    draft: Draft, broker_id: int, proposals: Mapping[TopicPartition, IsrProposal]
) -> dict[TopicPartition, IsrAnswer]:
    """Write the proposals that are accepted, and return a response to each proposal."""
    return {name: _answer(draft, broker_id, proposal) for name, proposal in proposals.items()}


def _answer(draft: Draft, broker_id: int, proposal: IsrProposal) -> IsrAnswer:
    name = proposal.topic_partition
    try:
        before = _known(draft, proposal)
        isr = tuple(member.broker_id for member in proposal.isr)
        _check_epochs(before, proposal)
        # The proposal has already been fulfilled, perhaps because a response was lost. Accept it,
        # regardless of its partition epoch.
        if isr == before.isr and before.leader == broker_id:
            return _as_it_is(before)
        _check_isr(draft, before, broker_id, proposal)
    except KafkaError as error:
        return IsrAnswer(error.code)
    accepted = before._replace(
        isr=isr, partition_epoch=before.partition_epoch + 1, controller_epoch=draft.epoch
    )
    draft.write(name, accepted)
    # The last target has joined the ISR, so the same decision completes the reassignment (KIP-455).
    if (accepted.adding or accepted.removing) and reassignment.complete(draft, name):
        after = draft.get(name)
        if after is not None and after.leader != broker_id:
            # The broker that made the proposal is no longer the leader and cannot use the accepted
            # ISR. It will receive a LeaderAndIsr.
            return IsrAnswer(NewLeaderElected.code)
    return _as_it_is(accepted)


def _known(draft: Draft, proposal: IsrProposal) -> PartitionImage:
    topic_id = proposal.topic_id
    # A leader that does not know the topic id sends zero. In that case, look up the topic by name.
    if topic_id != _NO_TOPIC_ID and topic_id not in draft.image.topic_names:
        raise UnknownTopicId
    topic = draft.topic(proposal.topic_partition.topic)
    partition = draft.get(proposal.topic_partition)
    if topic is None or partition is None or partition.partition_epoch == NEVER_LED:
        raise UnknownTopicOrPartition
    # The proposal was made for an earlier topic with the same name (KIP-516).
    if topic_id not in (_NO_TOPIC_ID, topic.topic_id):
        raise UnknownTopicId
    return partition


def _check_epochs(before: PartitionImage, proposal: IsrProposal) -> None:
    if (
        proposal.partition_epoch > before.partition_epoch
        or proposal.leader_epoch > before.leader_epoch
    ):
        raise NotController  # the leader's state is from a newer controller
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
    """Return whether the member may be in the ISR.

    Its broker must be live with the registration that was proposed. A broker that is shutting down
    cannot become a new member.
    """
    broker = draft.brokers.get(member.broker_id)
    # The broker is not registered, or the log directory of the replica has failed (KIP-112).
    if broker is None or member.broker_id in before.offline_replicas:
        return False
    # KIP-903: below version 3, the request contains no epoch, so Kafka does not check it.
    if member.broker_epoch not in (_NOT_SENT, broker.epoch):
        return False
    # RE-13: a broker that is shutting down cannot join an ISR, but remains a member until it is
    # removed.
    return member.broker_id in before.isr or member.broker_id in draft.electable


def _as_it_is(partition: PartitionImage) -> IsrAnswer:
    return IsrAnswer(
        NONE,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.partition_epoch,
    )
