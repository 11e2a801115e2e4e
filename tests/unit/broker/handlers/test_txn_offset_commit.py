"""TxnOffsetCommit: offsets that count with their transaction (TP-8, KIP-447, KIP-890)."""

from __future__ import annotations

import pytest

from barnabas.errors import (
    GroupAuthorizationFailed,
    InvalidGroupId,
    InvalidTxnState,
    OffsetMetadataTooLarge,
    TopicAuthorizationFailed,
    TransactionAbortable,
    TransactionalIdAuthorizationFailed,
    UnknownMemberId,
    UnknownTopicOrPartition,
    UnstableOffsetCommit,
)
from barnabas.protocol.api import (
    TXN_OFFSET_COMMIT,
)
from tests.kit.broker.offsets import commit, committed
from tests.kit.broker.topics import create
from tests.kit.broker.transactional_offsets import Producer, eventually, stable
from tests.kit.raw_client import RawClient

pytestmark = pytest.mark.usefixtures("offsets_topic")


@pytest.fixture
def producer(client: RawClient, topic: str) -> Producer:
    return Producer(client, f"tx-{topic}")


@pytest.mark.parametrize("version", range(TXN_OFFSET_COMMIT.max_version + 1))
def test_offsets_count_when_the_transaction_is_committed(
    client: RawClient, producer: Producer, topic: str, version: int
) -> None:
    commit(client, topic, {(topic, 0): 1})
    producer.begin(topic)
    offsets = {(topic, 0): 10, (topic, 1): 20}
    assert producer.commit(topic, offsets, version) == dict.fromkeys(offsets, 0)
    assert committed(client, topic, topic, 0, 1) == [1, -1]
    assert stable(client, topic, topic) == (-1, UnstableOffsetCommit.code)
    producer.end(is_commit=True)
    eventually(client, topic, topic, 10)
    assert committed(client, topic, topic, 0, 1) == [10, 20]


def test_offsets_of_an_aborted_transaction_never_were(
    client: RawClient, producer: Producer, topic: str
) -> None:
    commit(client, topic, {(topic, 0): 1})
    producer.begin(topic)
    producer.commit(topic, {(topic, 0): 10})
    producer.end(is_commit=False)
    eventually(client, topic, topic, 1)


@pytest.mark.parametrize(
    ("version", "error"), [(3, InvalidTxnState.code), (4, TransactionAbortable.code)]
)
def test_without_a_transaction_nothing_is_pending(
    client: RawClient, producer: Producer, topic: str, version: int, error: int
) -> None:
    """KIP-890: no marker would ever come for it."""
    assert producer.commit(topic, {(topic, 0): 1}, version) == {(topic, 0): error}
    assert stable(client, topic, topic) == (-1, 0)


def test_what_is_wrong_with_a_commit(client: RawClient, producer: Producer, topic: str) -> None:
    """Errors by partition, and none of them ends the transaction."""
    producer.begin(topic)
    unknown, place = UnknownTopicOrPartition.code, (topic, 0)
    assert producer.commit(topic, {(topic, 9): 1, ("no-such-topic", 0): 1, place: 5}) == {
        place: 0,
        (topic, 9): unknown,
        ("no-such-topic", 0): unknown,
    }
    assert producer.commit(topic, {place: 7}, metadata="m" * 4097) == {
        place: OffsetMetadataTooLarge.code
    }
    stale = producer.commit(topic, {place: 7}, generation_id=3, member_id="m")
    assert stale == {place: UnknownMemberId.code}
    producer.begin("")
    assert producer.commit("", {place: 7}) == {place: InvalidGroupId.code}
    producer.end(is_commit=True)
    eventually(client, topic, topic, 5)


def test_what_the_caller_may_not(producer: Producer, topic: str, deny) -> None:  # type: ignore[no-untyped-def]
    """SE-1."""
    hidden = f"{topic}-hidden"
    create(producer.client, hidden)
    producer.begin(topic)
    deny(hidden, "secret")
    assert producer.commit(topic, {(hidden, 0): 1, (topic, 0): 1}) == {
        (topic, 0): 0,
        (hidden, 0): TopicAuthorizationFailed.code,
    }
    refused = producer.commit("secret", {(topic, 0): 1})
    assert refused == {(topic, 0): GroupAuthorizationFailed.code}
    deny(producer.name)
    refused = producer.commit(topic, {(topic, 0): 1})
    assert refused == {(topic, 0): TransactionalIdAuthorizationFailed.code}
