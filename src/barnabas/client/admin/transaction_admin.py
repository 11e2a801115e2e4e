"""Implements the part of `Admin` that reads and ends transactions (KIP-664).

A hanging transaction holds back every read_committed consumer of its partitions. In the result of
`describe_producers`, its start offset does not move; `abort_transaction` ends it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from barnabas.client import arguments
from barnabas.client.admin import admin_arguments
from barnabas.client.admin.admin_arguments import Names
from barnabas.client.admin.admin_calls import AdminCalls
from barnabas.client.arguments import Partitions
from barnabas.client.channel import BrokerAddress
from barnabas.client.coordinator import CoordinatorFinder
from barnabas.client.errors import UnknownPartition, broker_error, check
from barnabas.errors import LeaderNotAvailable
from barnabas.protocol.api import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    WRITE_TXN_MARKERS,
)
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
)
from barnabas.protocol.messages.describe_producers import ProducerState as WireState
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from barnabas.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.types import TopicPartition

_FENCING_TIMEOUT_MS = 1  # timeout of a transaction that is never started


class TransactionListing(NamedTuple):
    """A transactional id as it appears in a list."""

    transactional_id: str
    producer_id: int
    state: str  # "Empty", "Ongoing", "PrepareCommit", "CompleteAbort" ... (Kafka's names)
    coordinator_id: int  # the broker that coordinates the id


class TransactionDescription(NamedTuple):
    """A transactional id and its open transaction, if there is one."""

    transactional_id: str
    state: str  # as in TransactionListing
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_at_ms: int  # -1: no transaction is open
    partitions: tuple[TopicPartition, ...]  # the open transaction's partitions, sorted
    coordinator: BrokerAddress


class ProducerState(NamedTuple):
    """The state of a producer, as known to the leader of a partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int  # -1: none
    last_timestamp_ms: int
    coordinator_epoch: int  # epoch of the last marker; -1: none
    transaction_start_offset: int  # -1: no transaction is open


def producer_state(answer: WireState) -> ProducerState:
    """Return the state of an active producer of a partition."""
    return ProducerState(
        producer_id=answer.producer_id,
        producer_epoch=answer.producer_epoch,
        last_sequence=answer.last_sequence,
        last_timestamp_ms=answer.last_timestamp,
        coordinator_epoch=answer.coordinator_epoch,
        transaction_start_offset=answer.current_txn_start_offset,
    )


class TransactionAdmin(AdminCalls):
    """Lists transactions and producers, and ends hanging transactions."""

    _transactions: CoordinatorFinder

    async def list_transactions(
        self,
        *,
        states: Names = (),
        producer_ids: int | Iterable[int] = (),
        longer_than_ms: int = -1,
    ) -> list[TransactionListing]:
        """Return the coordinators' transactional ids (all, or the selected ones), sorted.

        `longer_than_ms` selects the transactions that have been open for longer than this
        (KIP-994). Raises ValueError if a broker does not support this filter.
        """
        request = ListTransactionsRequest(
            state_filters=admin_arguments.names(states, "states"),
            producer_id_filters=admin_arguments.producer_ids(producer_ids),
            duration_filter=arguments.whole_number(longer_than_ms, "longer_than_ms", least=-1),
        )
        # Each broker lists the transactional ids on the partitions of __transaction_state that it
        # leads.
        found: dict[str, TransactionListing] = {}

        async def ask(node: BrokerAddress) -> None:
            answer = await self._cluster.call(
                node, LIST_TRANSACTIONS, request, ListTransactionsResponse
            )
            check(answer.error_code, f"listing transactions of {node}")
            if answer.unknown_state_filters:
                unknown = ", ".join(answer.unknown_state_filters)
                raise ValueError(f"not a transaction state: {unknown}")
            for each in answer.transaction_states:
                found[each.transactional_id] = TransactionListing(
                    each.transactional_id, each.producer_id, each.transaction_state, node.node_id
                )

        await self._ask_each_broker(ask)
        return [listing for _, listing in sorted(found.items())]

    async def describe_transactions(
        self, transactional_ids: Names
    ) -> dict[str, TransactionDescription]:
        """Return each transaction's state from its coordinator. Raises TransactionalIdNotFound."""
        return {
            transactional_id: await self._persist(partial(self._describe, transactional_id))
            for transactional_id in admin_arguments.names(transactional_ids, "transactional_ids")
        }

    async def _describe(self, transactional_id: str) -> TransactionDescription:
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        answer = await self._transactions.call(
            transactional_id, DESCRIBE_TRANSACTIONS, request, DescribeTransactionsResponse
        )
        (state,) = answer.transaction_states
        self._transactions.check(transactional_id, state.error_code)
        return TransactionDescription(
            transactional_id=transactional_id,
            state=state.transaction_state,
            producer_id=state.producer_id,
            producer_epoch=state.producer_epoch,
            timeout_ms=state.transaction_timeout_ms,
            started_at_ms=state.transaction_start_time_ms,
            partitions=tuple(
                sorted(
                    TopicPartition(topic.topic, partition)
                    for topic in state.topics
                    for partition in topic.partitions
                )
            ),
            coordinator=await self._transactions.broker(transactional_id),
        )

    async def describe_producers(
        self, partitions: Partitions
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Return the active producers of each partition, sorted by producer id.

        Raises the first KafkaError, such as UnknownTopicOrPartition.
        """
        return {
            partition: await self._persist(partial(self._producers_of, partition))
            for partition in admin_arguments.partitions(partitions)
        }

    async def _producers_of(self, name: TopicPartition) -> tuple[ProducerState, ...]:
        wanted = DescribeProducersTopic(name=name.topic, partition_indexes=[name.partition])
        answer = await self._cluster.call(
            await self._leader(name),
            DESCRIBE_PRODUCERS,
            DescribeProducersRequest(topics=[wanted]),
            DescribeProducersResponse,
        )
        ((partition,),) = (topic.partitions for topic in answer.topics)
        check(partition.error_code, f"producers of {name}", partition.error_message)
        return tuple(sorted(map(producer_state, partition.active_producers)))

    async def abort_transaction(
        self,
        partition: TopicPartition,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int = -1,
    ) -> None:
        """Write an abort marker for a producer to a partition, without involving the coordinator.

        Use this only for a hanging transaction. `describe_producers` returns the producer ids and
        epochs. Raises InvalidProducerEpoch, TransactionCoordinatorFenced or
        ClusterAuthorizationFailed.
        """
        partition = arguments.topic_partition(partition, "partition")
        topic = WritableTxnMarkerTopic(
            name=partition.topic, partition_indexes=[partition.partition]
        )
        # This is the request that a coordinator would send. A leader accepts it from any user who
        # may alter the cluster, unless it has seen a higher coordinator epoch (KIP-664).
        marker = WritableTxnMarker(
            producer_id=arguments.whole_number(producer_id, "producer_id"),
            producer_epoch=arguments.whole_number(producer_epoch, "producer_epoch"),
            transaction_result=False,
            topics=[topic],
            coordinator_epoch=max(
                arguments.whole_number(coordinator_epoch, "coordinator_epoch", least=-1), 0
            ),
        )

        async def write() -> None:
            answer = await self._cluster.call(
                await self._leader(partition),
                WRITE_TXN_MARKERS,
                WriteTxnMarkersRequest(markers=[marker]),
                WriteTxnMarkersResponse,
            )
            for written in answer.markers:
                for each in written.topics:
                    for result in each.partitions:
                        check(result.error_code, f"aborting in {partition}")

        await self._persist(write)

    async def fence_producers(self, transactional_ids: Names) -> None:
        """Raise the epoch of each id, which fences producers and aborts any open transaction."""
        for transactional_id in admin_arguments.names(transactional_ids, "transactional_ids"):
            await self._persist(partial(self._fence, transactional_id))

    async def _fence(self, transactional_id: str) -> None:
        # Act like a new producer with this id, so that the epoch rises and the open transaction is
        # aborted.
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=_FENCING_TIMEOUT_MS
        )
        answer = await self._transactions.call(
            transactional_id, INIT_PRODUCER_ID, request, InitProducerIdResponse
        )
        self._transactions.check(transactional_id, answer.error_code)

    # ---- routing ----

    async def _leader(self, name: TopicPartition) -> BrokerAddress:
        metadata = self._cluster.metadata
        topic = await metadata.topic(name.topic, self._cluster.config.default_api_timeout_ms)
        if name.partition not in topic.partitions:
            raise UnknownPartition(
                f"topic {name.topic!r} has partitions 0 to {len(topic.partitions) - 1}, "
                f"not {name.partition}"
            )
        leader = metadata.view.leader(name)
        if leader is None:
            raise broker_error(LeaderNotAvailable.code, f"partition {name}")
        return leader
