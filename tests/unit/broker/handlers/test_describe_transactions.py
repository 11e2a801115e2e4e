"""DescribeTransactions: what the coordinator knows of a transactional id (KIP-664)."""

from __future__ import annotations

from typing import Any

from barnabas.errors import InvalidRequest, TransactionalIdNotFound
from barnabas.protocol.api import DESCRIBE_TRANSACTIONS
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tests.kit.broker.transactional import TransactionalProducer
from tests.kit.raw_client import RawClient


def test_each_id_is_answered_once(client: RawClient, topic: str) -> None:
    producer = TransactionalProducer(client, topic, timeout_ms=50_000).begun()
    producer.add(topic, 1, 0)
    request = DescribeTransactionsRequest(transactional_ids=[topic, "no-such-id", "", topic])
    answer: Any = client.call(DESCRIBE_TRANSACTIONS, 0, request)
    found, unknown, empty = answer.transaction_states
    assert (found.error_code, found.transactional_id, found.transaction_state) == (
        0,
        topic,
        "Ongoing",
    )
    assert (found.producer_id, found.producer_epoch) == (producer.producer_id, 0)
    assert found.transaction_timeout_ms == 50_000
    assert found.transaction_start_time_ms > 1_700_000_000_000
    assert [(each.topic, each.partitions) for each in found.topics] == [(topic, [0, 1])]
    assert (unknown.transactional_id, unknown.error_code) == (
        "no-such-id",
        TransactionalIdNotFound.code,
    )
    assert empty.error_code == InvalidRequest.code


def test_no_transactional_id_is_asked_about(client: RawClient) -> None:
    answer: Any = client.call(DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest())
    assert answer.transaction_states == []
