"""How many transactions a second go through one partition, from several producers at once.

    python -m benchmarks.transactions [--producers N] [--seconds S] [--kafka] [--json FILE]

A transaction is what the smallest one is: AddPartitionsToTxn, one batch of one record, EndTxn. With
`--kafka` a real Kafka does the same in the same run.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from barnabas.errors import ConcurrentTransactions
from barnabas.protocol.api import (
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    PRODUCE,
)
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
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
from barnabas.records.record import BatchBuilder
from benchmarks import brokers
from benchmarks.accounting import cpu_seconds
from benchmarks.client_work import create_topic
from benchmarks.figures import Figure, parser_of, show
from benchmarks.light_client import LightClient

COMMAND = "python -m benchmarks.transactions"
TOPIC = "copied"
PRODUCERS, SECONDS = 16, 5.0
_ADD, _END, _INIT, _PRODUCE, _TRANSACTION = 2, 2, 1, 8, 1


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--producers", type=int, default=PRODUCERS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--kafka", action="store_true", help="a real Kafka beside it")
    options = parser.parse_args()
    figures = measure(options.producers, options.seconds, beside_kafka=options.kafka)
    show("Transactions", figures, options.json, "Kafka" if options.kafka else "")


def measure(
    producers: int = PRODUCERS, seconds: float = SECONDS, *, beside_kafka: bool = False
) -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        with brokers.barnabas(Path(directory) / "barnabas") as broker:
            create_topic(broker.servers, TOPIC, 1)
            rate, cpu_us = _run(broker, producers, seconds)
        other: tuple[float, float] | tuple[None, None] = (None, None)
        if beside_kafka:
            with brokers.kafka(Path(directory) / "kafka") as broker:
                create_topic(broker.servers, TOPIC, 1)
                _run(broker, producers, seconds)  # a JVM compiles first
                other = _run(broker, producers, seconds)
    what = f"transactions, {producers} producers, one partition"
    return [
        Figure(what, "1/s", rate, 1000, at_most=False, other=other[0], command=COMMAND),
        Figure(f"{what}: broker CPU", "us", cpu_us, other=other[1], command=COMMAND),
    ]


def _run(broker: brokers.Broker, producers: int, seconds: float) -> tuple[float, float]:
    port = int(broker.servers.rpartition(":")[2])
    return asyncio.run(_transact(port, broker.pid, producers, seconds))


async def _transact(port: int, pid: int, producers: int, seconds: float) -> tuple[float, float]:
    """Committed transactions a second, and the broker's CPU microseconds for each."""
    ready = [await Producer.ready(port, f"tx-{i}") for i in range(producers)]
    before, began = cpu_seconds(pid), time.perf_counter()
    done = await asyncio.gather(*[each.commit_until(began + seconds) for each in ready])
    took = time.perf_counter() - began
    used = cpu_seconds(pid) - before
    for producer in ready:
        producer.client.close()
    return sum(done) / took, used / sum(done) * 1e6


class Producer:
    """One transactional id on a connection of its own."""

    def __init__(self, client: LightClient, name: str, producer_id: int, epoch: int) -> None:
        self.client = client
        self._name = name
        self._id = producer_id
        self._epoch = epoch
        self._sequence = 0

    @classmethod
    async def ready(cls, port: int, name: str) -> Producer:
        client = await LightClient.connect(port)
        find = FindCoordinatorRequest(key=name, key_type=_TRANSACTION)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        for _ in range(100):
            found = await client.call(FIND_COORDINATOR, 2, find, FindCoordinatorResponse)
            if not found.error_code:
                made = await client.call(INIT_PRODUCER_ID, _INIT, request, InitProducerIdResponse)
                if not made.error_code:
                    return cls(client, name, made.producer_id, made.producer_epoch)
            await asyncio.sleep(0.1)
        raise TimeoutError(f"no producer id for {name} within ten seconds")

    async def commit_until(self, ends_at: float) -> int:
        """Transactions one after the other; how many were committed."""
        done = 0
        while time.perf_counter() < ends_at:
            await self._add()
            await self._produce()
            await self._commit()
            done += 1
        return done

    async def _add(self) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
        )
        while True:
            added = await self.client.call(
                ADD_PARTITIONS_TO_TXN, _ADD, request, AddPartitionsToTxnResponse
            )
            (topic,) = added.results_by_topic_v3_and_below
            code = topic.results_by_partition[0].partition_error_code
            if code != ConcurrentTransactions.code:  # the markers of the last one are on their way
                assert not code, code
                return

    async def _produce(self) -> None:
        builder = BatchBuilder(
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
            is_transactional=True,
        )
        builder.append(int(time.time() * 1000), b"key", bytes(100))
        self._sequence += 1
        data = PartitionProduceData(index=0, records=memoryview(builder.build()))
        request = ProduceRequest(
            transactional_id=self._name,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])],
        )
        answer = await self.client.call(PRODUCE, _PRODUCE, request, ProduceResponse)
        assert not answer.responses[0].partition_responses[0].error_code, answer

    async def _commit(self) -> None:
        request = EndTxnRequest(
            transactional_id=self._name,
            producer_id=self._id,
            producer_epoch=self._epoch,
            committed=True,
        )
        answer = await self.client.call(END_TXN, _END, request, EndTxnResponse)
        assert not answer.error_code, answer


if __name__ == "__main__":
    main()
