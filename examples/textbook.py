"""The first program of many textbooks: a hundred records without keys, and a group that reads them.

pip install .
python examples/textbook.py                            subscribes, on a cluster of its own
python examples/textbook.py --assign                   reads partition 1 only
python examples/textbook.py --servers a:9092,b:9092,c:9092
"""

from __future__ import annotations

import argparse
import contextlib
import time

import barnabas
from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer, TopicPartition
from barnabas.client.offsets import LATEST
from barnabas.errors import TopicAlreadyExists

TOPIC = "firstTopic"
GROUP = "MrATooConsumer"
RECORDS = 100
PATIENCE_S = 60


def main() -> None:
    parser = argparse.ArgumentParser(description="The textbook's producer and consumer.")
    parser.add_argument("--servers", help="HOST:PORT,... of a running cluster")
    parser.add_argument("--assign", action="store_true", help="read partition 1, not all")
    given = parser.parse_args()
    if given.servers:
        run(given.servers, given.assign)
    else:
        with barnabas.Cluster(brokers=3) as cluster:
            run(cluster.bootstrap_servers, given.assign)


def run(servers: str, assigns: bool) -> None:
    with SyncAdmin(servers) as admin:
        with contextlib.suppress(TopicAlreadyExists):
            admin.create_topics([NewTopic(TOPIC, num_partitions=3, replication_factor=3)])
        send(servers)
        receive(servers, assigns)
        offsets = admin.list_group_offsets(GROUP)
    for partition, committed in sorted(offsets.items()):
        print(f"committed {partition}: {committed.offset}")
    print(f"committed in all: {sum(committed.offset for committed in offsets.values())}")


def send(servers: str) -> None:
    producer = SyncProducer(
        {
            "bootstrap.servers": servers,
            "key.serializer": "integer",
            "value.serializer": "string",
            "acks": "all",
            # The textbook's producer took the partitions in turn. Today's stays with one for a
            # batch, so that a hundred short records may all be in the same.
            "partitioner": "round-robin",
        }
    )
    futures = [producer.send(TOPIC, f"HelloWorld{number}") for number in range(RECORDS)]
    for future in futures:
        print(future.result())
    producer.close()


def receive(servers: str, assigns: bool) -> None:
    consumer = SyncConsumer(
        {
            "bootstrap.servers": servers,
            "group.id": GROUP,
            "enable.auto.commit": "true",
            "auto.offset.reset": "earliest",  # the group is new, and the records are there already
            "key.deserializer": "integer",
            "value.deserializer": "string",
        }
    )
    if assigns:
        partition = TopicPartition(TOPIC, 1)
        consumer.assign([partition])
        missing = end_of(servers, partition)
    else:
        consumer.subscribe([TOPIC])
        missing = RECORDS
    ends_at_s = time.monotonic() + PATIENCE_S
    while missing > 0:
        if time.monotonic() > ends_at_s:
            raise TimeoutError(f"{missing} records did not come within {PATIENCE_S} s")
        for record in consumer.poll(timeout_ms=1_000):
            print(f"partition {record.partition}, offset {record.offset}: {record.value}")
            missing -= 1
    consumer.close()  # commits the positions


def end_of(servers: str, partition: TopicPartition) -> int:
    with SyncAdmin(servers) as admin:
        return admin.list_offsets({partition: LATEST})[partition].offset


if __name__ == "__main__":
    main()
