"""Foreign clients with a quota, in the clear and over TLS after a log-in (SE-5).

Each writes 160 KB at a rate of 60 KB a second, measured over one to two seconds: it is throttled
for a second or two, sees that in its own statistics, and loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition

from barnabas import Broker
from barnabas.client import SyncAdmin
from tests.kit.waiting import wait_until

pytestmark = pytest.mark.foreign

RATE_BYTES = 60_000
RECORDS, VALUE = 16, bytes(10_000)
PATIENCE_S = 60


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "secure"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(secure=request.param, config={"quota.window.num": "2"}) as running:
        yield running


@pytest.fixture
def limited(broker: Broker) -> Iterator[Callable[[str, str], None]]:
    """Limits a client id, and takes that back."""
    with SyncAdmin(**broker.client_settings("barnabas")) as admin:

        def limit(client_id: str, quota: str) -> None:
            admin.alter_client_quotas({"client-id": client_id}, {quota: RATE_BYTES})

        yield limit


def confluent_options(broker: Broker, client_id: str, seen: list[float]) -> dict[str, Any]:
    return {
        **broker.client_settings("confluent-kafka"),
        "client.id": client_id,
        "throttle_cb": lambda event: seen.append(event.throttle_time),
    }


def test_se_5_confluent_kafka_is_throttled(
    broker: Broker, limited: Callable[[str, str], None]
) -> None:
    written: list[float] = []
    read: list[float] = []
    limited("confluent-out", "producer_byte_rate")
    producer = Producer(
        {**confluent_options(broker, "confluent-out", written), "batch.num.messages": 4}
    )
    for _ in range(RECORDS):
        producer.produce("confluent", VALUE, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    wait_until(lambda: producer.poll(0.1) is not None and max(written, default=0) > 0)
    limited("confluent-in", "consumer_byte_rate")
    options = confluent_options(broker, "confluent-in", read)
    options |= {"group.id": "g", "fetch.max.bytes": 50_000, "max.partition.fetch.bytes": 50_000}
    consumer = Consumer({**options, "message.max.bytes": 50_000})
    consumer.assign([TopicPartition("confluent", 0, OFFSET_BEGINNING)])
    found = []
    while len(found) < RECORDS:
        message = consumer.poll(PATIENCE_S)
        assert message is not None and message.error() is None
        found.append(message.value())
    assert found == [VALUE] * RECORDS
    wait_until(lambda: consumer.poll(0.1) is None and max(read, default=0) > 0)
    consumer.close()


def test_se_5_kafka_python_is_throttled(
    broker: Broker, limited: Callable[[str, str], None]
) -> None:
    settings = broker.client_settings("kafka-python")
    limited("python-out", "producer_byte_rate")
    producer = KafkaProducer(**settings, client_id="python-out", batch_size=40_000)
    for _ in range(RECORDS):
        producer.send("python", VALUE, partition=0)
    producer.flush(PATIENCE_S)
    assert longest_throttle_ms(producer.metrics()) > 0
    producer.close()
    limited("python-in", "consumer_byte_rate")
    consumer = KafkaConsumer(
        **settings,
        client_id="python-in",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=50_000,
        consumer_timeout_ms=PATIENCE_S * 1000,
    )
    consumer.assign([PythonPartition("python", 0)])
    assert [next(consumer).value for _ in range(RECORDS)] == [VALUE] * RECORDS
    assert longest_throttle_ms(consumer.metrics()) > 0
    consumer.close()


def longest_throttle_ms(metrics: Mapping[str, Mapping[str, float]]) -> float:
    return max(
        value
        for group in metrics.values()
        for name, value in group.items()
        if name.endswith("throttle-time-max")
    )
