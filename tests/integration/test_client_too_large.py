"""KIP-126: batches that a topic refuses as too large, from each way of sending."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from barnabas.client import BatchDelivery, Producer, ProducerRecord, SyncProducer, TopicPartition
from barnabas.errors import MessageTooLarge
from barnabas.records.record import BatchBuilder
from tests.kit.client_transactions import make, name
from tests.kit.clients.topic_records import topic_records

pytestmark = pytest.mark.secured

MOST_BYTES = 2_000
VALUES = [b"%04d" % number * 25 for number in range(300)]  # of a hundred bytes each
LARGE = b"L" * 3_000

OPTIONS: dict[str, Any] = {"batch_size": 65_536, "linger_ms": 60_000}


def small_topic(servers: str) -> str:
    topic = name("small")
    asyncio.run(make(servers, topic, partitions=1, max_message_bytes=str(MOST_BYTES)))
    return topic


def stored(servers: str, topic: str) -> list[bytes | None]:
    records = asyncio.run(topic_records(servers, topic, "read_committed"))
    return [record.value for record in sorted(records, key=lambda each: each.offset)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"enable_idempotence": False},
        {"retries": 0, "enable_idempotence": False},
        {"compression_type": "gzip", "batch_size": 1_000_000},
    ],
    ids=["idempotent", "plain", "without-retries", "gzip"],
)
def test_pr_5_a_batch_that_is_too_large_is_split(
    servers: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    topic = small_topic(servers)
    values = VALUES * (20 if "compression_type" in options else 1)
    with (
        caplog.at_level(logging.WARNING, "barnabas.client"),
        SyncProducer(servers, **OPTIONS | options) as producer,
    ):
        sent = [producer.send(topic, value) for value in values]
        producer.flush()
    kept = stored(servers, topic)
    assert [kept[each.result().offset] for each in sent] == values
    if options.get("enable_idempotence", True):  # without it parts overtake, as retries do
        assert kept == values
    (line,) = caplog.messages
    assert line.startswith(f"splitting batches for {topic}-0, which are refused with MESSAGE_TOO_")


@pytest.mark.parametrize("idempotent", [True, False])
def test_pr_8_one_record_that_is_too_large_fails_alone(servers: str, idempotent: bool) -> None:
    topic = small_topic(servers)
    values = [*VALUES[:50], LARGE, *VALUES[50:100]]
    with SyncProducer(servers, enable_idempotence=idempotent, **OPTIONS) as producer:
        sent = [producer.send(topic, value) for value in values]
        producer.flush()
    assert [index for index, each in enumerate(sent) if each.exception()] == [50]
    with pytest.raises(MessageTooLarge):
        sent[50].result()
    kept = stored(servers, topic)
    assert sorted(map(str, kept)) == sorted(map(str, VALUES[:100]))
    assert [kept[each.result().offset] for each in sent if not each.exception()] == VALUES[:100]


@pytest.mark.parametrize("way", ["many", "columns"])
def test_pr_8_the_outcome_of_many_records_names_those_that_failed(servers: str, way: str) -> None:
    topic = small_topic(servers)
    values = [*VALUES[:50], LARGE, *VALUES[50:100]]
    done: list[BatchDelivery] = []
    with SyncProducer(servers, **OPTIONS) as producer:
        if way == "many":
            records = [ProducerRecord(topic, value) for value in values]
            producer.send_many(records, on_delivery=done.append)
        else:
            producer.send_columns(topic, values, on_delivery=done.append)
        producer.flush()
    places = [place for each in done for place in zip(each.indexes, each.offsets, strict=True)]
    assert [offset for _, offset in sorted(places)] == [*range(50), -1, *range(50, 100)]
    assert [index for each in done for index in each.failed_indexes] == [50]
    assert [type(each.exception()) for each in done] == [MessageTooLarge]


def test_pr_7_a_transaction_of_batches_that_are_too_large(servers: str) -> None:
    topic = small_topic(servers)

    async def run() -> None:
        async with Producer(servers, transactional_id=name("split"), **OPTIONS) as producer:
            async with producer.transaction():
                for value in VALUES:
                    await producer.send(topic, value)
            with pytest.raises(MessageTooLarge):
                async with producer.transaction():
                    for value in (*VALUES[:10], LARGE):
                        await producer.send(topic, value)
            async with producer.transaction():
                await producer.send(topic, b"the last")

    asyncio.run(run())
    assert stored(servers, topic) == [*VALUES, b"the last"]


def test_a_batch_given_as_bytes_fails_as_a_whole(servers: str) -> None:
    """Its caller awaits one outcome."""
    topic = small_topic(servers)
    builder = BatchBuilder()
    for value in VALUES:
        builder.append(0, None, value)
    with SyncProducer(servers) as producer:
        sent = producer.send_batch(TopicPartition(topic, 0), builder.build())
        producer.flush()
        assert isinstance(sent.exception(), MessageTooLarge)
    assert stored(servers, topic) == []
