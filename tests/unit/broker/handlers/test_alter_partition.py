"""AlterPartition: what the controller says to leaders on other brokers (RE-9)."""

from __future__ import annotations

import pytest

from barnabas import Broker
from barnabas.broker.inter_broker.alter_partition_wire import (
    HIGHEST_VERSION,
    isr_answers,
    isr_request,
)
from barnabas.cluster.controller_requests import IsrAnswer, IsrMember, IsrProposal
from barnabas.errors import (
    ClusterAuthorizationFailed,
    NotController,
    StaleBrokerEpoch,
    UnknownTopicId,
)
from barnabas.protocol.api import ALTER_PARTITION
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest
from barnabas.types import TopicPartition
from tests.kit.broker.cluster_calls import Member
from tests.kit.broker.group_calls import allowing
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient


@pytest.fixture(scope="module")
def member(peer: Member) -> Member:
    create(peer.client, "t", 2)
    return peer


def proposal(member: Member, number: int) -> IsrProposal:
    """The ISR that there is."""
    image = member.node.controller.image
    topic = image.topics["t"]
    partition = topic.partitions[number]
    members = (IsrMember(0, image.brokers[0].epoch),)
    name = TopicPartition("t", number)
    return IsrProposal(
        name, topic.topic_id, partition.leader_epoch, members, partition.partition_epoch
    )


def answers(
    member: Member, proposals: list[IsrProposal], broker_epoch: int | None = None
) -> dict[TopicPartition, IsrAnswer]:
    epoch = member.node.controller.image.brokers[0].epoch if broker_epoch is None else broker_epoch
    message = isr_request(proposals, 0, epoch)
    return isr_answers(proposals, member.call(ALTER_PARTITION, message, HIGHEST_VERSION))


def test_each_partition_has_its_own_answer(member: Member) -> None:
    """RE-9"""
    wanted = [
        proposal(member, 0),
        proposal(member, 1)._replace(partition_epoch=99),
        proposal(member, 0)._replace(
            topic_partition=TopicPartition("gone", 0), topic_id=bytes(range(16))
        ),
    ]
    answered = answers(member, wanted)
    accepted = answered[TopicPartition("t", 0)]
    assert accepted[:4] == (0, 0, wanted[0].leader_epoch, (0,))
    assert answered[TopicPartition("t", 1)].error_code == NotController.code
    assert answered[TopicPartition("gone", 0)].error_code == UnknownTopicId.code
    state = member.node.controller.image.topics["t"].partitions[0]
    assert (state.isr, state.partition_epoch) == ((0,), accepted.partition_epoch)


def test_a_broker_that_has_registered_again_is_refused(member: Member) -> None:
    epoch = member.node.controller.image.brokers[0].epoch - 1
    message = isr_request([proposal(member, 0)], 0, epoch)
    response = member.call(ALTER_PARTITION, message, HIGHEST_VERSION)
    codes = [each.error_code for topic in response.topics for each in topic.partitions]
    assert {response.error_code, *codes} - {0} == {StaleBrokerEpoch.code}


def test_who_may_not(member: Member, node: Broker, client: RawClient) -> None:
    request = AlterPartitionRequest(broker_id=0)
    with allowing(member.broker, "t"):
        answer = member.call(ALTER_PARTITION, request)
    assert answer.error_code == ClusterAuthorizationFailed.code
    lone = Member(node, client).call(ALTER_PARTITION, request)
    assert lone.error_code == ClusterAuthorizationFailed.code
