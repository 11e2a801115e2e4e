"""AllocateProducerIds: blocks of producer ids for brokers that ask their controller (KIP-730)."""

from __future__ import annotations

from barnabas import Broker
from barnabas.errors import BrokerIdNotRegistered, ClusterAuthorizationFailed, StaleBrokerEpoch
from barnabas.protocol.api import ALLOCATE_PRODUCER_IDS, INIT_PRODUCER_ID
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.kit.broker.cluster_calls import Member
from tests.kit.broker.group_calls import allowing
from tests.kit.raw_client import RawClient


def ask(broker_id: int, broker_epoch: int) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch)


def test_no_id_is_given_twice(peer: Member) -> None:
    epoch = peer.node.controller.image.brokers[0].epoch
    blocks = [peer.call(ALLOCATE_PRODUCER_IDS, ask(0, epoch)) for _ in range(2)]
    assert [(each.error_code, each.producer_id_len) for each in blocks] == [(0, 1000)] * 2
    assert blocks[1].producer_id_start == blocks[0].producer_id_start + 1000
    own = peer.call(INIT_PRODUCER_ID, InitProducerIdRequest(transactional_id=None))
    assert own.producer_id == blocks[1].producer_id_start + 1000


def test_who_is_refused(peer: Member, node: Broker, client: RawClient) -> None:
    epoch = peer.node.controller.image.brokers[0].epoch
    codes = [
        peer.call(ALLOCATE_PRODUCER_IDS, request).error_code
        for request in (ask(0, epoch - 1), ask(5, epoch))
    ]
    assert codes == [StaleBrokerEpoch.code, BrokerIdNotRegistered.code]
    with allowing(peer.broker, "t"):
        answer = peer.call(ALLOCATE_PRODUCER_IDS, ask(0, epoch))
    assert answer.error_code == ClusterAuthorizationFailed.code
    lone = Member(node, client).call(ALLOCATE_PRODUCER_IDS, ask(0, -1))
    assert lone.error_code == ClusterAuthorizationFailed.code
