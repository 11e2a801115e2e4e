"""A test of code that uses confluent-kafka.

pip install '.[test]' confluent-kafka
pytest examples/testing_confluent_kafka.py
"""

from __future__ import annotations

from confluent_kafka import Consumer, Producer

from barnabas.testing import Broker, Topic


def test_a_group_reads_what_was_produced(barnabas_broker: Broker, barnabas_topic: Topic) -> None:
    servers = {"bootstrap.servers": barnabas_broker.bootstrap_servers}
    producer = Producer(servers)
    producer.produce(barnabas_topic.name, b"one", key=b"anna")
    producer.flush(10)
    assert barnabas_topic.values() == [b"one"]

    consumer = Consumer({**servers, "group.id": "billing", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([barnabas_topic.name])
        message = consumer.poll(10)
        assert message is not None and (message.key(), message.value()) == (b"anna", b"one")
        consumer.commit(message, asynchronous=False)
        barnabas_broker.wait_for(group="billing", state="Stable", members=1, lag=0)
    finally:
        consumer.close()
