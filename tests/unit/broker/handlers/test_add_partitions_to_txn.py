"""AddPartitionsToTxn: partitions join a transaction, all of them or none."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRequest,
    OperationNotAttempted,
    ProducerFenced,
    TopicAuthorizationFailed,
    TransactionAbortable,
    UnknownTopicOrPartition,
)
from barnabas.protocol.api import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.kit.broker.transactional import TransactionalProducer
from tests.kit.raw_client import RawClient


@pytest.mark.parametrize("version", range(4))
def test_a_producer_adds_in_every_version(client: RawClient, topic: str, version: int) -> None:
    """PR-7"""
    producer = TransactionalProducer(client, topic).begun()
    assert producer.add(topic, 1, 0, version=version) == [0, 0]
    assert producer.status == "Ongoing"
    assert producer.add(topic, 0, version=version) == [0]


def test_one_that_is_unknown_keeps_all_out(client: RawClient, topic: str) -> None:
    producer = TransactionalProducer(client, topic).begun()
    assert producer.add(topic, 0, 2) == [OperationNotAttempted.code, UnknownTopicOrPartition.code]
    assert producer.add("no-such-topic", 0) == [UnknownTopicOrPartition.code]
    assert producer.status == "Empty"


def test_clients_may_not_add_internal_topics(client: RawClient, topic: str) -> None:
    producer = TransactionalProducer(client, topic).begun()
    assert producer.add("__transaction_state", 0) == [TopicAuthorizationFailed.code]


@pytest.mark.parametrize(("version", "error"), [(1, InvalidProducerEpoch), (2, ProducerFenced)])
def test_a_fenced_producer(
    client: RawClient, topic: str, version: int, error: type[ProducerFenced]
) -> None:
    old = TransactionalProducer(client, topic).begun()
    TransactionalProducer(client, topic).begun()
    assert old.add(topic, 0, version=version) == [error.code]


def test_an_unknown_transactional_id(client: RawClient, topic: str) -> None:
    producer = TransactionalProducer(client, f"never-{topic}")
    assert producer.add(topic, 0) == [InvalidProducerIdMapping.code]
    producer.name = ""
    assert producer.add(topic, 0) == [InvalidRequest.code]


def transaction(
    producer: TransactionalProducer, topic: str, *partitions: int, verify_only: bool = False
) -> AddPartitionsToTxnTransaction:
    return AddPartitionsToTxnTransaction(
        transactional_id=producer.name,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
    )


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_ask_for_many_at_once(client: RawClient, topic: str, version: int) -> None:
    """KIP-890: verified or added, each transaction with its own answer."""
    one, two = (TransactionalProducer(client, f"{topic}-{i}").begun() for i in range(2))
    one.add(topic, 0)
    request = AddPartitionsToTxnRequest(
        transactions=[
            transaction(one, topic, 0, 1, verify_only=True),
            transaction(two, topic, 1),
            transaction(TransactionalProducer(client, "stranger"), topic, 0),
        ]
    )
    answer: Any = client.call(ADD_PARTITIONS_TO_TXN, version, request)
    assert answer.error_code == 0
    codes = {
        result.transactional_id: [
            each.partition_error_code
            for found in result.topic_results
            for each in found.results_by_partition
        ]
        for result in answer.results_by_transaction
    }
    assert codes == {
        one.name: [0, TransactionAbortable.code],
        two.name: [0],
        "stranger": [InvalidProducerIdMapping.code],
    }
    assert (one.status, two.status) == ("Ongoing", "Ongoing")
