"""Copies a topic to another by transactions, with its offsets in them: may be killed at any time.

python -m tests.integration.copy_job SERVERS GROUP SOURCE TARGET
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

AT_ONCE = 10
TIMEOUT_S = 90.0


def main(servers: str, group: str, source: str, target: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "log_level": 0,
            "session.timeout.ms": 1000,
            "heartbeat.interval.ms": 300,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "transactional.id": f"{group}-copy",
            # Its successor ends what it left open; no one else is to, however slow it is.
            "transaction.timeout.ms": 60_000,
            "socket.timeout.ms": 10_000,
            "log_level": 0,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    consumer.subscribe([source])
    print("copying", flush=True)
    while True:
        messages = [each for each in consumer.consume(AT_ONCE, 0.2) if each.error() is None]
        if not messages:
            continue
        producer.begin_transaction()
        try:
            for message in messages:
                producer.produce(target, message.value(), partition=message.partition())
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()),
                consumer.consumer_group_metadata(),
                TIMEOUT_S,
            )
            commit(producer)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(TIMEOUT_S)
            rewind(consumer)


def commit(producer: Producer) -> None:
    """Until it is known to be committed; raises what the transaction cannot overcome."""
    while True:
        try:
            producer.commit_transaction(TIMEOUT_S)
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return


def rewind(consumer: Consumer) -> None:
    """Back to what is committed: the aborted records have to be read again."""
    for each in consumer.committed(consumer.assignment(), TIMEOUT_S):
        offset = each.offset if each.offset >= 0 else 0
        consumer.seek(TopicPartition(each.topic, each.partition, offset))


if __name__ == "__main__":
    main(*sys.argv[1:])
