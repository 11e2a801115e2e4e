"""Transactional producers, some of which share an id: each fences the other when it begins.

Like our client, a producer that does not know the outcome of a record aborts and takes its next
epoch, so that late requests belong to no transaction. It also does so if it had to ask the
coordinator more than once: transactions of the first kind have one epoch, so an EndTxn that arrives
late would end the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cluster.layout import TRANSACTION_TOPIC
from barnabas.coordinator.state_partition import partition_of
from barnabas.coordinator.transaction import Owner
from barnabas.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    ProducerFenced,
    TransactionAbortable,
)
from barnabas.protocol.message import Message
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.types import TopicPartition
from simulation.transaction_checks import Outcome, Tried
from simulation.wire import AskCoordinator, Coordinated, Produce, Produced
from simulation.workload import Client, Counts

if TYPE_CHECKING:
    from simulation.cluster import Cluster

_CALL_TIMEOUT_MS = 1200
_BACKOFF_MS = 60
_PATIENCE_MS = 4000
_STALL_CHANCE, _ABORT_CHANCE = 0.04, 0.15
_MOST_RECORDS = 4

_FINAL = (
    OutOfOrderSequenceNumber.code,
    InvalidProducerEpoch.code,
    ProducerFenced.code,
    InvalidTxnState.code,
    TransactionAbortable.code,
)
_GONE = (ProducerFenced.code, InvalidProducerEpoch.code, InvalidProducerIdMapping.code)


class TransactionalProducer(Client):
    """Makes one transaction after another, until it is stopped."""

    __slots__ = ("_counts", "_id", "_is_in_doubt", "_owner", "_sequences", "_timeout_ms",
                 "has_stopped", "is_stopping")  # fmt: skip

    def __init__(
        self, cluster: Cluster, number: int, transactional_id: str, counts: Counts
    ) -> None:
        super().__init__(cluster, number)
        self._id = transactional_id
        self._counts = counts
        self._timeout_ms = 2500
        self._owner: Owner | None = None
        self._is_in_doubt = False
        self._sequences: dict[tuple[bytes, int], int] = {}
        self.is_stopping = False
        self.has_stopped = False

    async def run(self) -> None:
        random = self.cluster.world.random
        while not self.is_stopping:
            await self.sleep(int(random.expovariate(1 / 250)))
            if self._owner is None:
                await self.sleep(random.randrange(3000))
                await self.identify()
            else:
                await self._write()
        self.has_stopped = True

    async def _write(self) -> None:
        """Write one transaction with a few records in several partitions."""
        random, names = self.cluster.world.random, self.cluster.partitions
        tried = self.cluster.checks.transactions.begin(self._id)
        for _ in range(random.randint(1, _MOST_RECORDS)):
            name = names[random.randrange(len(names))]
            if not await self.send(tried, name):
                await self.end(tried, is_commit=False)
                return
        if random.random() < _STALL_CHANCE:
            await self.sleep(self._timeout_ms + random.randrange(1000))
        await self.end(tried, is_commit=random.random() >= _ABORT_CHANCE)

    # --- the coordinator -------------------------------------------------------------------------

    async def identify(self) -> bool:
        """Take the id, or its next epoch if it already has the id; returns whether that
        succeeded."""
        owner = self._owner or Owner(-1, -1)
        request = InitProducerIdRequest(
            transactional_id=self._id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=owner.producer_id,
            producer_epoch=owner.producer_epoch,
        )
        answer, _ = await self._ask(request)
        self._owner = None
        self._is_in_doubt = False
        self._sequences = {}
        if isinstance(answer, InitProducerIdResponse) and not answer.error_code:
            self._owner = Owner(answer.producer_id, answer.producer_epoch)
            self.cluster.world.tell(
                "producer {} is {}, epoch {}", self.number, self._id, answer.producer_epoch
            )
        return self._owner is not None

    async def add(self, name: TopicPartition) -> bool:
        """Add a partition that the transaction will write to."""
        assert self._owner is not None
        topic = AddPartitionsToTxnTopic(name=name.topic, partitions=[name.partition])
        request = AddPartitionsToTxnTransaction(
            transactional_id=self._id,
            producer_id=self._owner.producer_id,
            producer_epoch=self._owner.producer_epoch,
            topics=[topic],
        )
        answer, tries = await self._ask(request)
        self._is_in_doubt = self._is_in_doubt or tries > 1
        if not isinstance(answer, AddPartitionsToTxnResult):
            return False
        return not _code(answer)

    async def end(self, tried: Tried, *, is_commit: bool) -> None:
        """Commit or abort, and record the outcome, if there is an answer."""
        assert self._owner is not None
        if not is_commit:
            tried.outcome = Outcome.ABORTED
        else:
            tried.outcome = Outcome.ASKED
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self._owner.producer_id,
            producer_epoch=self._owner.producer_epoch,
            committed=is_commit,
        )
        answer, tries = await self._ask(request)
        is_done = isinstance(answer, EndTxnResponse) and not answer.error_code
        if is_done and is_commit:
            tried.outcome = Outcome.COMMITTED
            self._counts.acknowledged += len(tried.places)
        elif answer is not None and tries == 1 and is_commit:
            tried.outcome = Outcome.ABORTED  # refused at first: by a successor, or late
        if not is_done and (is_commit or answer is None or _code(answer) in _GONE):
            self._owner = None
        elif tries > 1 or self._is_in_doubt:
            await self.end_doubts()

    async def end_doubts(self) -> None:
        """Take the next epoch, so that anything still under way is refused when it arrives."""
        await self.identify()

    async def _ask(self, request: Message) -> tuple[Message | None, int]:
        """Return the answer (None if there is none), and how often the request may have been
        carried out."""
        world, options = self.cluster.world, self.cluster.options
        partition = partition_of(self._id, options.transaction_partitions)
        name = TopicPartition(TRANSACTION_TOPIC, partition)
        deadline_ms = world.now_ms + _PATIENCE_MS
        is_stale, tries = False, 0
        while world.now_ms < deadline_ms:
            leader = await self.leader(name, is_stale=is_stale)
            if leader is None:
                is_stale = True
                await self.sleep(_BACKOFF_MS)
                continue
            tries += 1
            question = AskCoordinator(self._id, request)
            answer: Coordinated | None = await self.connection(leader.broker_id).call(
                question, _CALL_TIMEOUT_MS
            )
            is_stale = answer is None or bool(answer.error_code)
            if answer is not None and answer.answer is not None:
                if _code(answer.answer) != ConcurrentTransactions.code:
                    return answer.answer, tries
                tries -= 1  # it was refused, so it has done nothing
            await self.sleep(_BACKOFF_MS)
        return None, tries

    # --- partitions ------------------------------------------------------------------------------

    async def send(self, tried: Tried, name: TopicPartition, *, adds: bool = True) -> bool:
        """Send a record; returns whether it is in the transaction, which otherwise must be
        aborted."""
        if adds and not await self.add(name):
            return False
        assert self._owner is not None
        self._counts.last_value += 1
        value, topic_id = self._counts.last_value, self.cluster.topics[name.topic]
        place = (topic_id, name.partition)
        sequence = self._sequences.get(place, 0)
        request = Produce(
            name,
            topic_id,
            -1,
            self._owner.producer_id,
            sequence,
            value,
            self._owner.producer_epoch,
            self._id,
        )
        self.cluster.checks.topics.sends(value, topic_id)
        self.cluster.checks.transactions.sends(tried, value, name, topic_id)
        deadline_ms = self.cluster.world.now_ms + _PATIENCE_MS
        is_stale = False
        while self.cluster.world.now_ms < deadline_ms:
            leader = await self.leader(name, is_stale=is_stale)
            is_stale = True
            if leader is not None:
                answer: Produced | None = await self.connection(leader.broker_id).call(
                    request, _CALL_TIMEOUT_MS
                )
                if answer is not None and not answer.error_code:
                    self._sequences[place] = sequence + 1
                    tried.places[value] = (name, topic_id, answer.offset)
                    return True
                if answer is not None and answer.error_code in _FINAL:
                    break
            await self.sleep(_BACKOFF_MS)
        self._is_in_doubt = True
        return False


def _code(answer: Message) -> int:
    if isinstance(answer, AddPartitionsToTxnResult):
        return answer.topic_results[0].results_by_partition[0].partition_error_code
    assert isinstance(answer, InitProducerIdResponse | EndTxnResponse)
    return answer.error_code
