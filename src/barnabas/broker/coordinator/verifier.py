"""Asks coordinators on other brokers whether transactional writes are expected (KIP-890, part 1).

    unverified -> guard set -> AddPartitionsToTxn (verify only) -> answer kept -> append takes it

Invariant: a response is valid only as long as its guard is set. Writing a marker removes the guard,
because the marker ends the transaction to which the response applies. The append uses up the
response. For later batches, it is sufficient that the log contains the open transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from barnabas.broker.partitions.replica_listener import ReplicaListener
from barnabas.client.errors import Unreachable
from barnabas.cluster.layout import TRANSACTION_TOPIC
from barnabas.coordinator.decision import TransactionalBatch
from barnabas.coordinator.state_partition import partition_of
from barnabas.errors import NONE, CoordinatorNotAvailable, CorruptData, UnsupportedVersion
from barnabas.protocol.api import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.records.batch import read_header
from barnabas.types import TopicPartition, by_topic

if TYPE_CHECKING:
    from barnabas.broker.cluster_view import ClusterView
    from barnabas.broker.configs.current_config import CurrentConfig
    from barnabas.broker.inter_broker.peer_links import PeerLinks
    from barnabas.broker.partitions.replica import Replica

_VERIFY_FROM, _VERSION = 4, 5
_UNASKED = -1


class _CannotVerify(Exception):
    """The coordinator's broker is too old to be asked."""


class Unverified(NamedTuple):
    """The first batch of a transaction in one of this broker's partitions."""

    topic_partition: TopicPartition
    batch: TransactionalBatch


def batches_of(
    transactional_id: str, records: Iterable[tuple[TopicPartition, memoryview]]
) -> Iterator[Unverified]:
    """Yield a producer's batches according to their headers. Invalid headers are rejected by the
    append.
    """
    for topic_partition, batch in records:
        try:
            header = read_header(batch)
        except CorruptData:
            continue
        known = TransactionalBatch(transactional_id, header.producer_id, header.producer_epoch)
        yield Unverified(topic_partition, known)


class _Guard:
    """Holds the response for a producer in a partition until a marker or an append removes it."""

    __slots__ = ("batch", "code")

    def __init__(self, batch: TransactionalBatch) -> None:
        self.batch = batch
        self.code = _UNASKED


class Verifier(ReplicaListener):
    """Asks coordinators on other brokers and stores their responses. Not used on a standalone
    broker.
    """

    __slots__ = ("_config", "_guards", "_links", "_view")

    def __init__(self, view: ClusterView, config: CurrentConfig, links: PeerLinks) -> None:
        self._view = view
        self._config = config
        self._links = links
        self._guards: dict[tuple[TopicPartition, int], _Guard] = {}

    def coordinator_of(self, transactional_id: str) -> int:
        """Return the broker that coordinates this transactional id, or -1 if there is none."""
        topic = self._view.image.topics.get(TRANSACTION_TOPIC)
        if topic is None:
            return -1
        return topic.partitions[partition_of(transactional_id, len(topic.partitions))].leader

    def is_elsewhere(self, transactional_id: str) -> bool:
        return self.coordinator_of(transactional_id) != self._view.broker_id

    async def verify(self, unverified: Sequence[Unverified]) -> None:
        """Ask about a producer's writes in one transaction, and store the response for `take`."""
        batch = unverified[0].batch
        guards = {}
        for topic_partition, each in unverified:
            # Set the guard before sending the request, so that a marker written in the meantime
            # removes it.
            guard = guards[topic_partition] = _Guard(each)
            self._guards[topic_partition, each.producer_id] = guard
        topics = [
            AddPartitionsToTxnTopic(name=name, partitions=numbers)
            for name, numbers in by_topic(guards).items()
        ]

        def request(version: int) -> AddPartitionsToTxnRequest:
            if version < _VERIFY_FROM:
                raise _CannotVerify(f"AddPartitionsToTxn {version} cannot verify")
            return message

        message = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=batch.transactional_id,
                    producer_id=batch.producer_id,
                    producer_epoch=batch.producer_epoch,
                    verify_only=True,
                    topics=topics,
                )
            ]
        )
        try:
            codes = await self._ask(batch.transactional_id, request)
        except _CannotVerify:
            # As in Kafka, a coordinator that is too old (Kafka 3.4 and earlier) is not asked.
            codes = dict.fromkeys(guards, NONE)
        for topic_partition, guard in guards.items():
            guard.code = codes.get(topic_partition, CoordinatorNotAvailable.code)

    async def _ask(
        self, transactional_id: str, request: Callable[[int], AddPartitionsToTxnRequest]
    ) -> dict[TopicPartition, int]:
        timeout_ms = self._config.int("request.timeout.ms")
        try:
            answer = await self._links.ask(
                self.coordinator_of(transactional_id),
                ADD_PARTITIONS_TO_TXN,
                request,
                timeout_ms,
                _VERSION,
            )
        except (Unreachable, UnsupportedVersion, CorruptData):
            return {}  # the answer is not known, so the producer retries
        response = cast(AddPartitionsToTxnResponse, answer)
        return {
            TopicPartition(topic.name, each.partition_index): each.partition_error_code
            for result in response.results_by_transaction
            for topic in result.topic_results
            for each in topic.results_by_partition
        }

    def take(self, topic_partition: TopicPartition, batch: TransactionalBatch) -> int:
        """Remove the coordinator's error code for this write, and return it.

        The code is COORDINATOR_NOT_AVAILABLE if the coordinator was not asked, or if a marker has
        been written since it responded.
        """
        guard = self._guards.get((topic_partition, batch.producer_id))
        # If there is no valid response, the producer has to retry.
        if guard is None or guard.code == _UNASKED or guard.batch != batch:
            return CoordinatorNotAvailable.code
        del self._guards[topic_partition, batch.producer_id]
        return guard.code

    def on_marker(self, topic_partition: TopicPartition, producer_id: int) -> None:
        """Forget the response, because a marker has been appended for this producer."""
        self._guards.pop((topic_partition, producer_id), None)

    def on_left(self, replica: Replica) -> None:
        topic_partition = replica.topic_partition
        for key in [key for key in self._guards if key[0] == topic_partition]:
            del self._guards[key]
