"""A transactional producer, request by request, on a raw connection; and a broker to reach into."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from barnabas.broker.server import Server
from barnabas.cluster.store import MetadataStore
from barnabas.config import BrokerConfig
from barnabas.errors import CoordinatorLoadInProgress
from barnabas.protocol.api import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    PRODUCE,
    WRITE_TXN_MARKERS,
    Api,
)
from barnabas.protocol.codec import Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.kit.raw_client import RawClient, batch, once_found, once_loaded
from tests.kit.waiting import wait_until

TRANSACTION = 1  # a coordinator's kind


def find_coordinator(client: RawClient, name: str) -> None:
    """Ask for the coordinator, which has its topic created if it does not exist yet."""
    request = FindCoordinatorRequest(key=name, key_type=TRANSACTION)
    answer: Any = once_found(lambda: client.call(FIND_COORDINATOR, 2, request))
    assert answer.error_code == 0, answer


class TransactionalProducer:
    """Sends exactly what a test asks it to; the answers' error codes are what it returns.

    It waits for its coordinator to be loaded, as every client does: that is no answer.
    """

    def __init__(self, client: RawClient, name: str, timeout_ms: int = 60_000) -> None:
        self.client = client
        self.name = name
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}
        find_coordinator(client, name)

    def init(self, version: int = 4) -> int:
        """Take the transactional id; nothing changes here if that is refused."""
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=self.timeout_ms
        )
        answer: Any = self._ask(INIT_PRODUCER_ID, version, request)
        if answer.error_code == 0:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences = {}
        return int(answer.error_code)

    def begun(self) -> TransactionalProducer:
        """Take the id, whatever is to be aborted before."""
        wait_until(lambda: self.init() == 0)
        return self

    def add(self, topic: str, *partitions: int, version: int = 3) -> list[int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

        def codes() -> list[int]:
            answer: Any = self.client.call(ADD_PARTITIONS_TO_TXN, version, request)
            (result,) = answer.results_by_topic_v3_and_below
            return [each.partition_error_code for each in result.results_by_partition]

        return once_loaded(codes, lambda found: max(found, default=0))

    def add_offsets(self, group: str, version: int = 3) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        answer: Any = self._ask(ADD_OFFSETS_TO_TXN, version, request)
        return int(answer.error_code)

    def send(self, topic: str, partition: int, value: bytes = b"v", version: int = 9) -> int:
        """Produce one record in the transaction."""
        sequence = self._sequences.get((topic, partition), 0)
        records = batch(
            value,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        data = PartitionProduceData(index=partition, records=records)
        request = ProduceRequest(
            transactional_id=self.name,
            acks=-1,
            timeout_ms=60_000,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        answer: Any = self.client.call(PRODUCE, version, request)
        code = answer.responses[0].partition_responses[0].error_code
        if code == 0:
            self._sequences[topic, partition] = sequence + 1
        return int(code)

    def end(self, is_commit: bool, version: int = 3) -> int:
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=is_commit,
        )
        answer: Any = self._ask(END_TXN, version, request)
        return int(answer.error_code)

    def _ask(self, api: Api, version: int, request: Message) -> Any:
        def ask() -> Any:
            return self.client.call(api, version, request)

        return once_loaded(ask, lambda answer: int(answer.error_code))

    @property
    def status(self) -> str:
        return status_of(self.client, self.name)


def status_of(client: RawClient, name: str) -> str:
    """The state of the transactional id, in Kafka's words; empty while it is being loaded."""
    request = DescribeTransactionsRequest(transactional_ids=[name])
    answer: Any = client.call(DESCRIBE_TRANSACTIONS, 0, request)
    (state,) = answer.transaction_states
    assert state.error_code in (0, CoordinatorLoadInProgress.code), state
    return str(state.transaction_state)


def write_marker(
    client: RawClient,
    topic: str,
    producer: tuple[int, int],
    coordinator_epoch: int,
    *,
    is_commit: bool = False,
    partition: int = 0,
    version: int = 1,
) -> int:
    """End a producer's transaction in a partition, as a coordinator or an admin client does."""
    marker = WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        transaction_result=is_commit,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        coordinator_epoch=coordinator_epoch,
    )
    answer: Any = client.call(WRITE_TXN_MARKERS, version, WriteTxnMarkersRequest(markers=[marker]))
    (result,) = answer.markers
    assert result.producer_id == producer[0]
    return int(result.topics[0].partitions[0].error_code)


# --- a broker on this loop ----------------------------------------------------------------------


@asynccontextmanager
async def running(directory: Path, store: MetadataStore | None = None) -> AsyncIterator[Server]:
    """A broker on this loop, so that a test can reach into it; its own store, unless given one."""
    settings = {
        "log.dirs": str(directory),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "transaction.state.log.num.partitions": "1",
        "offsets.topic.num.partitions": "1",
    }
    server = Server(BrokerConfig(settings), store=store)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def talk(server: Server, say: Callable[[RawClient], None]) -> None:
    """Be a client of the broker, in a thread."""

    def be_client() -> None:
        with RawClient(f"127.0.0.1:{server.port}") as client:
            say(client)

    await asyncio.to_thread(be_client)
