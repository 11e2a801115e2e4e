"""Converts AlterPartition proposals and responses to messages, and vice versa.

In the messages, topics are identified by id, and before version 2 (Kafka 3.2) by name. The leader
looks up their names in its proposals, and the controller in its image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from barnabas.broker.inter_broker.control_plane_wire import check
from barnabas.cluster.controller_requests import IsrAnswer, IsrMember, IsrProposal
from barnabas.cluster.image import ClusterImage
from barnabas.errors import (
    NONE,
    FencedLeaderEpoch,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    PartitionResponse,
    TopicData,
    TopicResponse,
)
from barnabas.types import TopicPartition

HIGHEST_VERSION: Final = 3
_HAS_TOPIC_IDS: Final = 2
_HAS_BROKER_EPOCHS: Final = 3
_RECOVERING: Final = 1
_SAME_TO_OLD_LEADERS: Final = {
    NONE: NONE,
    UnknownTopicOrPartition.code: UnknownTopicOrPartition.code,
    FencedLeaderEpoch.code: FencedLeaderEpoch.code,
    InvalidUpdateVersion.code: InvalidUpdateVersion.code,
    # The leader that proposed this gets a LeaderAndIsr that replaces its state.
    NewLeaderElected.code: FencedLeaderEpoch.code,
    InvalidRequest.code: InvalidUpdateVersion.code,
}
"""Maps a partition's error code to the one sent before version 2. Other codes are left out."""
_UNANSWERED: Final = IsrAnswer(UnknownServerError.code)

# --- the leader's side ---------------------------------------------------------------------------


def isr_request(
    proposals: Sequence[IsrProposal],
    broker_id: int,
    broker_epoch: int,
    version: int = HIGHEST_VERSION,
) -> AlterPartitionRequest:
    """Build the request in this version. `broker_id` and `broker_epoch` identify the sender."""
    topics: dict[tuple[str, bytes], TopicData] = {}
    for proposal in proposals:
        name, topic_id = proposal.topic_partition.topic, proposal.topic_id
        topic = topics.get((name, topic_id))
        if topic is None:
            topic = topics[name, topic_id] = TopicData(topic_name=name, topic_id=topic_id)
        wanted = PartitionData(
            partition_index=proposal.topic_partition.partition,
            leader_epoch=proposal.leader_epoch,
            partition_epoch=proposal.partition_epoch,
        )
        if version >= _HAS_BROKER_EPOCHS:
            wanted.new_isr_with_epochs = [
                BrokerState(broker_id=member.broker_id, broker_epoch=member.broker_epoch)
                for member in proposal.isr
            ]
        else:
            wanted.new_isr = [member.broker_id for member in proposal.isr]
        topic.partitions.append(wanted)
    return AlterPartitionRequest(
        broker_id=broker_id, broker_epoch=broker_epoch, topics=list(topics.values())
    )


def isr_answers(
    proposals: Sequence[IsrProposal], response: AlterPartitionResponse
) -> dict[TopicPartition, IsrAnswer]:
    """Return a response to every proposal. If the controller omitted one, its response is
    UNKNOWN_SERVER_ERROR.

    Raises the response's top-level error (NotController or StaleBrokerEpoch).
    """
    check(response.error_code)
    # Before version 2, a topic in the response has a name and no id.
    names = {proposal.topic_id: proposal.topic_partition.topic for proposal in proposals}
    answered = {
        (topic.topic_name or names.get(topic.topic_id), each.partition_index): _answer(each)
        for topic in response.topics
        for each in topic.partitions
    }
    return {
        proposal.topic_partition: answered.get(proposal.topic_partition, _UNANSWERED)
        for proposal in proposals
    }


def _answer(answered: PartitionResponse) -> IsrAnswer:
    if answered.error_code:
        return IsrAnswer(answered.error_code)
    return IsrAnswer(
        0, answered.leader_id, answered.leader_epoch, tuple(answered.isr), answered.partition_epoch
    )


# --- the controller's side -----------------------------------------------------------------------


def proposals_of(
    message: AlterPartitionRequest, version: int, image: ClusterImage
) -> list[IsrProposal]:
    """Return the proposals on which the controller can decide. `isr_response` rejects all other
    proposals.
    """
    proposals: dict[TopicPartition, IsrProposal] = {}
    for topic in message.topics:
        name = _name(topic, version, image)
        if name is None:
            continue
        for each in topic.partitions:
            if each.leader_recovery_state == _RECOVERING:
                continue
            topic_partition = TopicPartition(name, each.partition_index)
            proposals[topic_partition] = IsrProposal(
                topic_partition,
                image.topics[name].topic_id,
                each.leader_epoch,
                tuple(_members(each, version)),
                each.partition_epoch,
            )
    return list(proposals.values())


def _name(topic: TopicData, version: int, image: ClusterImage) -> str | None:
    if version >= _HAS_TOPIC_IDS:
        return image.topic_names.get(topic.topic_id)
    return topic.topic_name if topic.topic_name in image.topics else None


def _members(partition: PartitionData, version: int) -> Iterator[IsrMember]:
    if version >= _HAS_BROKER_EPOCHS:
        for member in partition.new_isr_with_epochs:
            yield IsrMember(member.broker_id, member.broker_epoch)
    else:
        for broker_id in partition.new_isr:
            yield IsrMember(broker_id, -1)


def isr_response(
    message: AlterPartitionRequest,
    version: int,
    image: ClusterImage,
    answers: Mapping[TopicPartition, IsrAnswer],
) -> AlterPartitionResponse:
    """Build a response for every partition in the request. `image` is the one that was passed to
    `proposals_of`.

    In Barnabas, leaders never have to recover from an unclean election, so a proposal in the
    RECOVERING state is rejected (KIP-704).

    Before version 2, a partition whose proposal may succeed later is left out, and the leader sends
    it again. Kafka 2.8 knows few error codes. After any other, such as INELIGIBLE_REPLICA, it does
    not change the ISR again until its next election.
    """
    unknown = UnknownTopicId if version >= _HAS_TOPIC_IDS else UnknownTopicOrPartition
    topics = []
    for topic in message.topics:
        name = _name(topic, version, image)
        results = []
        for each in topic.partitions:
            if name is None:
                answer = IsrAnswer(unknown.code)
            elif each.leader_recovery_state == _RECOVERING:
                answer = IsrAnswer(InvalidRequest.code)
            else:
                answer = answers[TopicPartition(name, each.partition_index)]
            if version < _HAS_TOPIC_IDS:
                code = _SAME_TO_OLD_LEADERS.get(answer.error_code)
                if code is None:
                    continue
                answer = answer._replace(error_code=code)
            results.append(_result(each.partition_index, answer))
        topics.append(
            TopicResponse(topic_name=topic.topic_name, topic_id=topic.topic_id, partitions=results)
        )
    return AlterPartitionResponse(topics=topics)


def has_omissions(message: AlterPartitionRequest, response: AlterPartitionResponse) -> bool:
    """Return whether the response lacks a partition, which the leader then sends again."""
    return sum(len(topic.partitions) for topic in message.topics) > sum(
        len(topic.partitions) for topic in response.topics
    )


def _result(number: int, answer: IsrAnswer) -> PartitionResponse:
    result = PartitionResponse(partition_index=number, error_code=answer.error_code)
    if not answer.error_code:
        result.leader_id = answer.leader
        result.leader_epoch = answer.leader_epoch
        result.isr = list(answer.isr)
        result.partition_epoch = answer.partition_epoch
    return result
