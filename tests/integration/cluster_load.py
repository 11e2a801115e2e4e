"""What is done to a cluster under load, and what must be true of it afterwards."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from confluent_kafka import Consumer, TopicPartition

from tests.conformance import confluent_client
from tests.integration.broker_process import wait_until
from tests.integration.senders import LEAST_PER_LIFE, PARTITIONS, Sender

BURST = 3_000
LONGEST_LOSS_SECONDS = 30.0


def acknowledge_more(senders: Iterable[Sender]) -> None:
    """Returns when each has had `LEAST_PER_LIFE` more acknowledged; it still may send some."""
    senders = list(senders)
    for sender in senders:
        sender.allow(LEAST_PER_LIFE + BURST)
    for sender in senders:
        wait_until(sender.has_acknowledged_enough, LONGEST_LOSS_SECONDS)


def leader_of(servers: str, topic: str, partition: int = 0) -> int:
    """Who leads it, once somebody does."""
    found: list[int] = []

    def is_led() -> bool:
        found[:] = [confluent_client.describe_topic(servers, topic)[partition].leader]
        return found[0] >= 0

    wait_until(is_led, LONGEST_LOSS_SECONDS)
    return found[0]


def wait_for_full_isr(servers: str, topic: str, size: int = 3) -> None:
    wait_until(
        lambda: all(
            len(partition.isr) == size
            for partition in confluent_client.describe_topic(servers, topic)
        ),
        LONGEST_LOSS_SECONDS,
    )


def check_everything_is_there(sender: Sender, servers: str) -> None:
    """For one that got everything acknowledged: what it sent is there, once and in order."""
    assert sender.failed == []
    seen = confluent_client.consume(servers, sender.topic, PARTITIONS, sender.sent_count)
    for partition in range(PARTITIONS):
        stored = [int(one.value or b"") for one in seen if one.partition == partition]
        sent = list(range(partition, sender.sent_count, PARTITIONS))
        pairs = enumerate(itertools.zip_longest(stored, sent))
        wrong = next(((at, pair) for at, pair in pairs if pair[0] != pair[1]), None)
        assert wrong is None, f"{sender.topic}-{partition} holds something else"


def committed_values(servers: str, topic: str, partitions: int) -> list[bytes]:
    """All that a reader of committed records sees, when it can read to the end of the log: no
    transaction is open for ever."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "looks",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    assigned = [TopicPartition(topic, number, 0) for number in range(partitions)]
    try:
        consumer.assign(assigned)
        ends = {
            each.partition: consumer.get_watermark_offsets(each, LONGEST_LOSS_SECONDS)[1]
            for each in assigned
        }
        values: list[bytes] = []

        def is_read() -> bool:
            for message in consumer.consume(1_000, 0.1):
                assert message.error() is None, message.error()
                values.append(message.value())
            at = {each.partition: each.offset for each in consumer.position(assigned)}
            return all(at[number] >= end for number, end in ends.items() if end)

        wait_until(is_read, LONGEST_LOSS_SECONDS)
        return values
    finally:
        consumer.close()
