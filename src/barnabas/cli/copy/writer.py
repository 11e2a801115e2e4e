"""Writes batches in transactions of a single transactional id.

Nothing is retried here: after any error, the caller calls `identify` again, which aborts the open
transaction, and continues where the last committed one ended. Many requests may therefore be in
flight; a broker handles those of a connection in their order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from typing import NamedTuple

from barnabas.cli.copy.fetches import leader_of
from barnabas.cli.copy.restamp import Draft
from barnabas.client.channel import BrokerAddress
from barnabas.client.cluster import Cluster, exchange
from barnabas.client.coordinator import TRANSACTION, CoordinatorFinder
from barnabas.client.errors import Unreachable, broker_error
from barnabas.errors import ConcurrentTransactions
from barnabas.protocol.api import ADD_PARTITIONS_TO_TXN, END_TXN, INIT_PRODUCER_ID, PRODUCE
from barnabas.protocol.codec import Message
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.shielded import retrieve_error
from barnabas.types import TopicPartition, by_topic

_HIGHEST_ADD_PARTITIONS = 3  # higher versions are used between brokers
_HIGHEST_PRODUCE = 11  # 12 and above belong to version 2 of transactions (KIP-890)
_TIMEOUT_MS = 60_000
_PAUSE_S, _LONGEST_PAUSE_S = 0.002, 0.1
_SEQUENCES = 2**31


class Request(NamedTuple):
    """A Produce request that was sent."""

    drafts: list[tuple[TopicPartition, Draft]]
    answer: asyncio.Future[Message]

    async def base_offsets(self) -> dict[TopicPartition, int]:
        """Return where the batches begin. Raises Unreachable or the first batch's KafkaError."""
        response = await self.answer
        assert isinstance(response, ProduceResponse)
        found: dict[TopicPartition, int] = {}
        for topic in response.responses:
            for each in topic.partition_responses:
                name = TopicPartition(topic.name, each.index)
                if each.error_code:
                    raise broker_error(each.error_code, f"writing to {name}", each.error_message)
                found[name] = each.base_offset
        if any(name not in found for name, _ in self.drafts):
            raise Unreachable("the broker did not answer for every partition")
        return found


class Writer:
    """A transactional producer of whole batches."""

    def __init__(self, cluster: Cluster, transactional_id: str) -> None:
        self.cluster = cluster
        self._id = transactional_id
        self._coordinators = CoordinatorFinder(cluster, TRANSACTION)
        self._producer_id = self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self._partitions: set[TopicPartition] = set()

    async def identify(self) -> None:
        """Obtain a new epoch, which fences older writers and aborts their transaction.

        The request does not name the last epoch (KIP-360): if an earlier request was handled, but
        its response was lost, the broker would fence this writer for its own request.

        Raises KafkaError or Unreachable.
        """

        async def attempt() -> InitProducerIdResponse:
            request = InitProducerIdRequest(
                transactional_id=self._id, transaction_timeout_ms=_TIMEOUT_MS
            )
            answer = await self._coordinators.call(
                self._id, INIT_PRODUCER_ID, request, InitProducerIdResponse
            )
            self._coordinators.check(self._id, answer.error_code)
            return answer

        answer = await self.cluster.persist(attempt, _TIMEOUT_MS)
        self._producer_id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()
        self._partitions.clear()

    async def add(self, partitions: Collection[TopicPartition]) -> None:
        """Add partitions to the transaction, which begins with the first of them."""
        fresh = [name for name in partitions if name not in self._partitions]
        if not fresh:
            return
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=numbers)
                for name, numbers in by_topic(fresh).items()
            ],
        )
        pause_s = _PAUSE_S
        while True:
            try:
                await self._add(request)
                break
            except ConcurrentTransactions:  # the markers of the last one are being written
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        self._partitions.update(fresh)

    async def _add(self, request: AddPartitionsToTxnRequest) -> None:
        channel = await self._coordinators.channel(self._id)
        answer = await exchange(
            channel,
            ADD_PARTITIONS_TO_TXN,
            request,
            AddPartitionsToTxnResponse,
            _HIGHEST_ADD_PARTITIONS,
        )
        for topic in answer.results_by_topic_v3_and_below:
            for each in topic.results_by_partition:
                subject = f"adding {topic.name}-{each.partition_index} to the transaction"
                self._coordinators.check(self._id, each.partition_error_code, subject)

    async def send(self, drafts: Iterable[tuple[TopicPartition, Draft]]) -> list[Request]:
        """Send one batch to each of these partitions, in a request to each leader."""
        by_leader: dict[BrokerAddress, list[tuple[TopicPartition, Draft]]] = {}
        for name, draft in drafts:
            by_leader.setdefault(await leader_of(self.cluster, name), []).append((name, draft))
        sent: list[Request] = []
        for node, each in by_leader.items():
            channel = await self.cluster.pool.channel(node)
            version = channel.version(PRODUCE, _HIGHEST_PRODUCE)
            answer = channel.send(PRODUCE, self._request(each), version)
            # The caller may have stopped at an earlier error.
            answer.add_done_callback(retrieve_error)
            sent.append(Request(each, answer))
        return sent

    def _request(self, drafts: list[tuple[TopicPartition, Draft]]) -> ProduceRequest:
        topics: dict[str, list[PartitionProduceData]] = {}
        for name, draft in drafts:
            sequence = self._sequences.get(name, 0)
            self._sequences[name] = (sequence + len(draft.offsets)) % _SEQUENCES
            records = draft.seal(self._producer_id, self._epoch, sequence)
            data = PartitionProduceData(index=name.partition, records=records)
            topics.setdefault(name.topic, []).append(data)
        return ProduceRequest(
            transactional_id=self._id,
            acks=-1,
            timeout_ms=_TIMEOUT_MS,
            topic_data=[
                TopicProduceData(name=name, partition_data=own) for name, own in topics.items()
            ],
        )

    async def commit(self) -> None:
        """Commit the transaction. If there is no response, its outcome is unknown."""
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=True,
        )
        answer = await self._coordinators.call(self._id, END_TXN, request, EndTxnResponse)
        self._coordinators.check(self._id, answer.error_code)
        self._partitions.clear()
