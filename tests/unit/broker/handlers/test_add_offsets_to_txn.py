"""AddOffsetsToTxn: a group's partition of offsets joins a transaction."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas import Broker
from barnabas.errors import InvalidProducerEpoch, InvalidRequest, ProducerFenced
from barnabas.protocol.api import ADD_OFFSETS_TO_TXN, DESCRIBE_TRANSACTIONS
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.kit.broker.transactional import TransactionalProducer
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until


@pytest.mark.parametrize("version", range(ADD_OFFSETS_TO_TXN.max_version + 1))
def test_in_every_version(client: RawClient, version: int) -> None:
    producer = TransactionalProducer(client, f"offsets-{version}").begun()
    assert producer.add_offsets("g", version=version) == 0
    request = DescribeTransactionsRequest(transactional_ids=[producer.name])
    answer: Any = client.call(DESCRIBE_TRANSACTIONS, 0, request)
    (topic,) = answer.transaction_states[0].topics
    assert (topic.topic, topic.partitions) == ("__consumer_offsets", [0])
    assert producer.end(True) == 0
    wait_until(lambda: producer.status == "CompleteCommit")


def test_the_topic_of_the_groups_is_made_on_the_first_request() -> None:
    """Producers find the group's coordinator after this: the topic has to be made now."""
    with Broker() as broker, RawClient(broker.bootstrap_servers) as client:
        producer = TransactionalProducer(client, "first").begun()
        assert producer.add_offsets("g") == 0


@pytest.mark.parametrize(("version", "error"), [(1, InvalidProducerEpoch), (2, ProducerFenced)])
def test_a_fenced_producer(client: RawClient, version: int, error: type[ProducerFenced]) -> None:
    old = TransactionalProducer(client, "fenced").begun()
    TransactionalProducer(client, "fenced").begun()
    assert old.add_offsets("g", version=version) == error.code


def test_an_empty_name(client: RawClient) -> None:
    producer = TransactionalProducer(client, "fine").begun()
    producer.name = ""
    assert producer.add_offsets("g") == InvalidRequest.code
