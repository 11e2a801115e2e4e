"""A test of code that uses kafka-python.

pip install '.[test]' kafka-python
pytest examples/testing_kafka_python.py
"""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer

from barnabas.testing import Broker, Topic


def test_a_group_reads_what_was_produced(barnabas_broker: Broker, barnabas_topic: Topic) -> None:
    servers = barnabas_broker.bootstrap_servers
    producer = KafkaProducer(bootstrap_servers=servers)
    producer.send(barnabas_topic.name, b"one", key=b"anna").get(10)
    producer.close()
    assert barnabas_topic.values() == [b"one"]

    consumer = KafkaConsumer(
        barnabas_topic.name,
        bootstrap_servers=servers,
        group_id="billing",
        auto_offset_reset="earliest",
        consumer_timeout_ms=10_000,
    )
    try:
        record = next(consumer)
        assert (record.key, record.value) == (b"anna", b"one")
        consumer.commit()
        barnabas_broker.wait_for(group="billing", state="Stable", members=1, lag=0)
    finally:
        consumer.close()
