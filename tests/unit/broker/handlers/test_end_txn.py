"""EndTxn: the outcome of a transaction, decided once."""

from __future__ import annotations

import pytest

from barnabas.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTxnState,
    ProducerFenced,
)
from barnabas.protocol.api import END_TXN
from tests.kit.broker.transactional import TransactionalProducer
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until


@pytest.mark.parametrize("version", range(END_TXN.max_version + 1))
@pytest.mark.parametrize("is_commit", [True, False], ids=["commit", "abort"])
def test_in_every_version(client: RawClient, topic: str, version: int, is_commit: bool) -> None:
    """PR-7"""
    producer = TransactionalProducer(client, topic).begun()
    producer.add(topic, 0, 1)
    assert producer.end(is_commit, version) == 0
    name = "CompleteCommit" if is_commit else "CompleteAbort"
    wait_until(lambda: producer.status == name)
    assert producer.end(is_commit, version) == 0, "asked again, the answer is the same"
    assert producer.end(not is_commit, version) == InvalidTxnState.code


def test_the_next_transaction_begins_at_once(client: RawClient, topic: str) -> None:
    """The markers are written before the answer is read: no client has to try again."""
    producer = TransactionalProducer(client, topic).begun()
    for _ in range(20):
        assert producer.add(topic, 0) == [0]
        assert producer.end(True) == 0


@pytest.mark.parametrize(("version", "error"), [(1, InvalidProducerEpoch), (2, ProducerFenced)])
def test_a_fenced_producer(
    client: RawClient, topic: str, version: int, error: type[ProducerFenced]
) -> None:
    old = TransactionalProducer(client, topic).begun()
    TransactionalProducer(client, topic).begun()
    assert old.end(True, version) == error.code


def test_what_cannot_end(client: RawClient, topic: str) -> None:
    producer = TransactionalProducer(client, topic)
    assert producer.end(True) == InvalidProducerIdMapping.code
    assert producer.begun().end(True) == InvalidTxnState.code
    producer.name = ""
    assert producer.end(True) == InvalidRequest.code
