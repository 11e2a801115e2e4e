"""TxnOffsetCommit: offsets that count with their transaction (TP-8, KIP-447, KIP-890)."""

from __future__ import annotations

from collections.abc import Callable

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
    ADD_OFFSETS_TO_TXN,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    OFFSET_FETCH,
    TXN_OFFSET_COMMIT,
)
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchTopic,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from tests.kit.raw_client import RawClient
from tests.kit.waiting import wait_until
from tests.unit.broker.conftest import create
from tests.unit.broker.handlers.test_offset_commit import (  # noqa: F401  (fixtures)
    _coordinator,
    commit,
    committed,
    deny,
)


def patiently(ask: Callable[[], int]) -> None:
    """Ask until it succeeds: the coordinator is being loaded, the last transaction completed."""
    wait_until(lambda: ask() == 0)


class Producer:
    """A transactional producer that only ever commits offsets."""

    def __init__(self, client: RawClient, transactional_id: str) -> None:
        self.client = client
        self.name = transactional_id
        request = FindCoordinatorRequest(key=transactional_id, key_type=1)
        patiently(lambda: client.call(FIND_COORDINATOR, 3, request).error_code)
        patiently(self._init)

    def _init(self) -> int:
        request = InitProducerIdRequest(transactional_id=self.name, transaction_timeout_ms=60_000)
        answer = self.client.call(INIT_PRODUCER_ID, 4, request)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)

    def begin(self, group_id: str) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group_id,
        )
        patiently(lambda: self.client.call(ADD_OFFSETS_TO_TXN, 3, request).error_code)

    def commit(
        self,
        group_id: str,
        offsets: dict[tuple[str, int], int],
        version: int = 4,
        metadata: str = "",
        **member: object,
    ) -> dict[tuple[str, int], int]:
        topics: dict[str, TxnOffsetCommitTopic] = {}
        for (topic, partition), offset in offsets.items():
            one = TxnOffsetCommitPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=metadata
            )
            topics.setdefault(topic, TxnOffsetCommitTopic(name=topic)).partitions.append(one)
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=list(topics.values()),
            **member,
        )
        answer = self.client.call(TXN_OFFSET_COMMIT, version, request)
        return {
            (topic.name, told.partition_index): told.error_code
            for topic in answer.topics
            for told in topic.partitions
        }

    def end(self, *, is_commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )
        assert self.client.call(END_TXN, 3, request).error_code == 0


@pytest.fixture
def producer(client: RawClient, topic: str) -> Producer:
    return Producer(client, f"tx-{topic}")


def stable(client: RawClient, group_id: str, topic: str) -> tuple[int, int]:
    """Offset and error code of partition 0, for who insists on stable offsets."""
    wanted = [OffsetFetchTopic(name=topic, partition_indexes=[0])]
    group = OffsetFetchGroup(group_id=group_id, topics=wanted)
    request = OffsetFetchRequest(groups=[group], require_stable=True)
    told = client.call(OFFSET_FETCH, 9, request).groups[0].topics[0].partitions[0]
    return told.committed_offset, told.error_code


def eventually(client: RawClient, group_id: str, topic: str, offset: int) -> None:
    """EndTxn is answered before its markers are written."""
    wait_until(lambda: stable(client, group_id, topic) == (offset, 0))


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


def test_what_the_caller_may_not(producer: Producer, topic: str, deny) -> None:  # type: ignore[no-untyped-def] # noqa: F811
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
