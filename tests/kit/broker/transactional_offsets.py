"""A producer whose transactions consist of committed offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
        **member: Any,
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
            (topic.name, partition.partition_index): partition.error_code
            for topic in answer.topics
            for partition in topic.partitions
        }

    def end(self, *, is_commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )
        assert self.client.call(END_TXN, 3, request).error_code == 0


def stable(client: RawClient, group_id: str, topic: str) -> tuple[int, int]:
    """Offset and error code of partition 0, for who insists on stable offsets."""
    wanted = [OffsetFetchTopic(name=topic, partition_indexes=[0])]
    group = OffsetFetchGroup(group_id=group_id, topics=wanted)
    request = OffsetFetchRequest(groups=[group], require_stable=True)
    answer = client.call(OFFSET_FETCH, 9, request).groups[0].topics[0].partitions[0]
    return answer.committed_offset, answer.error_code


def eventually(client: RawClient, group_id: str, topic: str, offset: int) -> None:
    """EndTxn is answered before its markers are written."""
    wait_until(lambda: stable(client, group_id, topic) == (offset, 0))
