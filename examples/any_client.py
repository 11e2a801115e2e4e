"""A broker inside a program, and a client that somebody else wrote: confluent-kafka.

pip install . confluent-kafka
python examples/any_client.py
"""

from __future__ import annotations

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

import barnabas

GREETINGS = {"anna": "hello", "bea": "bonjour", "carla": "ciao"}


def main() -> None:
    with barnabas.Broker() as broker:
        send(broker.bootstrap_servers)
        receive(broker.bootstrap_servers)


def send(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers})
    for name, greeting in GREETINGS.items():
        producer.produce("greetings", key=name, value=greeting)
    producer.flush()


def receive(servers: str) -> None:
    # Reading by assignment joins no group and commits nothing; the name is required all the same.
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition("greetings", 0, OFFSET_BEGINNING)])
    for message in consumer.consume(len(GREETINGS), timeout=10):
        print(message.offset(), message.key().decode(), message.value().decode())
    consumer.close()


if __name__ == "__main__":
    main()
