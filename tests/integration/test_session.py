"""How far idempotence reaches: one producer session (DL-5)."""

from __future__ import annotations

from barnabas import Broker
from barnabas.client.sync.producer import SyncProducer
from barnabas.protocol.api import INIT_PRODUCER_ID, PRODUCE
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.kit.broker.topics import create
from tests.kit.raw_client import RawClient, batch


def _produce(client: RawClient, records: bytes) -> int:
    """The base offset that is answered."""
    data = PartitionProduceData(index=0, records=records)
    topics = [TopicProduceData(name="orders", partition_data=[data])]
    request = ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=topics)
    answer = client.call(PRODUCE, 9, request).responses[0].partition_responses[0]
    assert answer.error_code == 0
    offset: int = answer.base_offset
    return offset


def test_dl_5_what_a_new_session_sends_again_is_stored_again() -> None:
    """A repetition within a session is recognized as such; over a restart it is not."""
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        create(client, "orders")
        ids = []
        for session in range(2):
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60000)
            given = client.call(INIT_PRODUCER_ID, 4, request)
            ids.append(given.producer_id)
            producer = {
                "producer_id": given.producer_id,
                "producer_epoch": given.producer_epoch,
                "base_sequence": 0,
            }
            order = batch(b"one book", **producer)
            assert _produce(client, order) == session
            assert _produce(client, order) == session, "a retry is answered with the first offset"
        assert ids[0] != ids[1]


def test_dl_5_our_own_producer_is_a_new_one_after_a_restart() -> None:
    with Broker() as broker:
        offsets = []
        for _ in range(2):
            with SyncProducer(broker.bootstrap_servers, enable_idempotence=True) as producer:
                offsets.append(producer.send("orders", b"one book").result(120).offset)
        assert offsets == [0, 1]
