"""The program of `textbook.py` with a client that somebody else wrote: confluent-kafka.

pip install . confluent-kafka
python examples/textbook_confluent.py
"""

from __future__ import annotations

import time

from confluent_kafka import Consumer, Message, Producer
from confluent_kafka.serialization import (
    IntegerSerializer,
    MessageField,
    SerializationContext,
    StringDeserializer,
    StringSerializer,
)

import barnabas
from barnabas.client import NewTopic, SyncAdmin

TOPIC = "firstTopic"
GROUP = "MrATooConsumer"
RECORDS = 100
PATIENCE_S = 60


def main() -> None:
    with barnabas.Cluster(brokers=3) as cluster, SyncAdmin(cluster.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, num_partitions=3, replication_factor=3)])
        send(cluster.bootstrap_servers)
        receive(cluster.bootstrap_servers)
        committed = admin.list_group_offsets(GROUP).values()
        print(f"committed in all: {sum(each.offset for each in committed)}")


def send(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    key, value = IntegerSerializer(), StringSerializer()
    of_key = SerializationContext(TOPIC, MessageField.KEY)
    for number in range(RECORDS):
        producer.produce(
            TOPIC, key=key(None, of_key), value=value(f"HelloWorld{number}"), on_delivery=report
        )
    producer.flush()


def report(error: object, message: Message) -> None:
    print(error or f"{message.topic()}-{message.partition()} at offset {message.offset()}")


def receive(servers: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": GROUP,
            "enable.auto.commit": True,
            "auto.offset.reset": "earliest",  # the group is new, and the records are there already
        }
    )
    consumer.subscribe([TOPIC])
    value = StringDeserializer()
    missing = RECORDS
    ends_at_s = time.monotonic() + PATIENCE_S
    while missing:
        if time.monotonic() > ends_at_s:
            raise TimeoutError(f"{missing} records did not come within {PATIENCE_S} s")
        message = consumer.poll(timeout=1)
        if message is not None and message.error() is None:
            place = f"partition {message.partition()}, offset {message.offset()}"
            print(f"{place}: {value(message.value())}")
            missing -= 1
    consumer.close()  # commits the positions


if __name__ == "__main__":
    main()
