"""AlterPartition as it travels: a leader's proposals and the controller's answers."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import pytest

from barnabas.broker.inter_broker.alter_partition_wire import (
    HIGHEST_VERSION,
    has_omissions,
    isr_answers,
    isr_request,
    isr_response,
    proposals_of,
)
from barnabas.cluster.controller_requests import IsrAnswer, IsrMember, IsrProposal
from barnabas.cluster.image import ClusterImage, PartitionImage, TopicImage
from barnabas.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    NotController,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import ALTER_PARTITION
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)
from barnabas.types import TopicPartition
from tests.kit.broker.recordings import recorded, travelled

T_ID, U_ID, GONE_ID = (bytes([number] * 16) for number in (1, 2, 3))
T0, T1, U0, GONE = (
    TopicPartition("t", 0),
    TopicPartition("t", 1),
    TopicPartition("u", 0),
    TopicPartition("gone", 0),
)
ISR = (IsrMember(1, 11), IsrMember(2, -1))


def image(**ids: bytes) -> ClusterImage:
    led = PartitionImage(1, 5, (1,), (1, 2), 9, 4)
    topics = {name: TopicImage(name, topic_id, {0: led}, {}) for name, topic_id in ids.items()}
    return ClusterImage.empty()._replace(
        topics=MappingProxyType(topics),
        topic_names=MappingProxyType({topic_id: name for name, topic_id in ids.items()}),
    )


def proposal(name: TopicPartition, topic_id: bytes) -> IsrProposal:
    return IsrProposal(name, topic_id, 5 + name.partition, ISR, 9)


PROPOSALS = [proposal(T0, T_ID), proposal(U0, U_ID), proposal(T1, T_ID)]


@pytest.mark.parametrize("version", range(ALTER_PARTITION.max_version + 1))
def test_proposals_arrive_as_they_were_meant(version: int) -> None:
    """MX-1: Kafka 2.8 has version 0 alone, and 3.4 has no broker epochs."""
    received = travelled(isr_request(PROPOSALS, 1, 11, version), version)
    assert (received.broker_id, received.broker_epoch) == (1, 11)
    got = proposals_of(received, version, image(t=T_ID, u=U_ID))
    epochs = [member.broker_epoch for each in got for member in each.isr]
    if version < HIGHEST_VERSION:
        assert set(epochs) == {-1}
        got = [
            each._replace(
                isr=tuple(
                    IsrMember(one.broker_id, own.broker_epoch)
                    for one, own in zip(each.isr, ISR, strict=True)
                )
            )
            for each in got
        ]
    assert sorted(got) == sorted(PROPOSALS)


@pytest.mark.parametrize("version", range(ALTER_PARTITION.max_version + 1))
def test_every_proposal_gets_the_answer_that_is_its_own(version: int) -> None:
    message = isr_request([*PROPOSALS, proposal(GONE, GONE_ID)], 1, 11, version)
    known = image(t=T_ID, u=U_ID)
    answers = {
        T0: IsrAnswer(0, 1, 5, (1, 2), 10),
        T1: IsrAnswer(InvalidUpdateVersion.code),
        U0: IsrAnswer(0, 1, 5, (1,), 12),
    }
    response = travelled(isr_response(message, version, known, answers), version)
    read = isr_answers([*PROPOSALS, proposal(GONE, GONE_ID)], response)
    unknown = UnknownTopicId if version >= 2 else UnknownTopicOrPartition
    assert read == {**answers, GONE: IsrAnswer(unknown.code)}


def test_a_proposal_of_which_nothing_is_said_is_not_taken_for_accepted() -> None:
    assert isr_answers(PROPOSALS[:1], AlterPartitionResponse()) == {
        T0: IsrAnswer(UnknownServerError.code)
    }


def test_what_is_refused_as_a_whole_is_raised() -> None:
    with pytest.raises(NotController):
        isr_answers(PROPOSALS, AlterPartitionResponse(error_code=NotController.code))


def test_a_leader_that_says_it_recovers_is_refused() -> None:
    message, version = isr_request(PROPOSALS[:1], 1, 11), HIGHEST_VERSION
    message.topics[0].partitions[0].leader_recovery_state = 1
    known = image(t=T_ID)
    assert proposals_of(message, version, known) == []
    response = isr_response(message, version, known, {})
    assert isr_answers(PROPOSALS[:1], response) == {T0: IsrAnswer(InvalidRequest.code)}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_older_versions_have_names_and_no_epochs(version: int) -> None:
    partition = PartitionData(partition_index=0, leader_epoch=5, new_isr=[1, 2], partition_epoch=9)
    topics = [
        TopicData(topic_name=name, topic_id=topic_id, partitions=[partition])
        for name, topic_id in (("t", T_ID), ("gone", GONE_ID))
    ]
    request = AlterPartitionRequest(broker_id=1, broker_epoch=11, topics=topics)
    message = travelled(request, version)
    known = image(t=T_ID)
    members = (IsrMember(1, -1), IsrMember(2, -1))
    (got,) = proposals_of(message, version, known)
    assert got == IsrProposal(T0, T_ID, 5, members, 9)
    answers = {T0: IsrAnswer(0, 1, 5, (1, 2), 10)}
    response = travelled(isr_response(message, version, known, answers), version)
    unknown = (UnknownTopicId if version == 2 else UnknownTopicOrPartition).code
    codes = [topic.partitions[0].error_code for topic in response.topics]
    assert codes == [0, unknown]
    assert [topic.topic_name for topic in response.topics] == (
        ["", ""] if version == 2 else ["t", "gone"]
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_mx_1_an_old_leader_gets_only_codes_that_it_knows(version: int) -> None:
    """MX-1: after any other, a leader of Kafka 2.8 leaves its ISR alone for ever."""
    message = isr_request(PROPOSALS, 1, 11, version)
    known = image(t=T_ID, u=U_ID)
    answers = {
        T0: IsrAnswer(IneligibleReplica.code),
        T1: IsrAnswer(0, 1, 5, (1, 2), 10),
        U0: IsrAnswer(NewLeaderElected.code),
    }
    response = travelled(isr_response(message, version, known, answers), version)
    assert has_omissions(message, response) is (version < 2)
    rows = {
        (PROPOSALS[at].topic_partition.topic, row.partition_index): row.error_code
        for at, topic in enumerate(response.topics)
        for row in topic.partitions
    }
    if version < 2:
        assert rows == {T1: 0, U0: FencedLeaderEpoch.code}
    else:
        assert rows == {name: answer.error_code for name, answer in answers.items()}


@pytest.mark.foreign
def test_kafkas_alter_partition_is_understood_and_said_alike(shared: Path) -> None:
    for version, request, response in recorded(shared, ALTER_PARTITION):
        ids = {f"topic{n}": topic.topic_id for n, topic in enumerate(request.topics)}
        known = image(**ids)
        proposals = proposals_of(request, version, known)
        said = isr_request(proposals, request.broker_id, request.broker_epoch, version)
        assert travelled(said, version) == request
        if response.error_code:
            with pytest.raises(NotController):
                isr_answers(proposals, response)
            continue
        answers = isr_answers(proposals, response)
        assert answers.keys() == {each.topic_partition for each in proposals}
        again = travelled(isr_response(request, version, known, answers), version)
        assert isr_answers(proposals, again) == answers
        for either in (again, response):
            either.topics.sort(key=lambda each: each.topic_id)
        assert again == response
