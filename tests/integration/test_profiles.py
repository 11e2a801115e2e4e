"""The defaults of Kafka 2.3, on a broker and in our clients."""

from __future__ import annotations

import barnabas
from barnabas.client import ConfigResource, SyncAdmin, SyncProducer, kafka_2_3
from barnabas.client.admin.admin import BROKER, STATIC_BROKER_CONFIG
from barnabas.config.profiles import profile


def test_a_profile_is_described_as_settings_of_the_broker() -> None:
    settings = {**profile("kafka-2.3"), "message.max.bytes": "77777"}  # one's own prevails
    with barnabas.Broker(config=settings) as broker, SyncAdmin(broker.bootstrap_servers) as admin:
        entries = admin.describe_configs(ConfigResource(BROKER, "0"), list(settings))
    assert {entry.name: entry.value for entry in entries} == settings
    assert {entry.source for entry in entries} == {STATIC_BROKER_CONFIG}


def test_a_producer_of_2_3_takes_the_partitions_in_turn() -> None:
    with (
        barnabas.Broker(config={"num.partitions": 3}) as broker,
        SyncProducer(broker.bootstrap_servers, **kafka_2_3.PRODUCER) as producer,
    ):
        sent = [producer.send("t", b"%d" % number) for number in range(9)]
        partitions = [delivery.result().partition for delivery in sent]
    assert sorted(partitions) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert partitions[:3] == partitions[3:6] == partitions[6:]
