"""A batch script: reads what a topic has now, writes what is valid to another one, and ends.

pip install .
python examples/batch.py                             on a broker of its own, with a few readings
python examples/batch.py --servers localhost:9092 --source readings --target clean

Its exit code is for cron and CI: 0 all is done; 1 some records could not be read or written, and
stderr says which; 2 wrong arguments; 3 no broker, or no such topic. A run after a failed one starts
where the last one that succeeded has ended, since only that commits its offsets.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

import barnabas
from barnabas.client import (
    BarnabasError,
    ConsumerRecord,
    SyncConsumer,
    SyncProducer,
    TopicPartition,
)

DONE, PARTLY, UNAVAILABLE = 0, 1, 3
GROUP = "cleaning"


def run(servers: str, source: str, target: str) -> int:
    """Clean the readings that are there; the exit code."""
    problems: list[str] = []
    with (
        SyncConsumer(
            servers,
            group_id=GROUP,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            allow_auto_create_topics=False,
        ) as consumer,
        SyncProducer(servers) as producer,
    ):
        consumer.assign([TopicPartition(source, n) for n in consumer.partitions_for(source)])
        sent = []
        for record in unread(consumer):
            try:
                sent.append((record, producer.send(target, clean(record.value), key=record.key)))
            except ValueError as error:
                problems.append(f"{place(record)}: {error}")
        producer.flush()
        for record, delivery in sent:
            if error := delivery.exception():
                problems.append(f"{place(record)}: {error}")
        if not problems:
            consumer.commit_sync()
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{len(sent)} of {len(sent) + len(problems)} readings are clean")
    return PARTLY if problems else DONE


def unread(consumer: SyncConsumer) -> Iterator[ConsumerRecord]:
    """What the group has not committed, up to the present end."""
    ends = consumer.end_offsets(consumer.assignment())
    while any(consumer.position(partition) < end for partition, end in ends.items()):
        for record in consumer.poll(timeout_ms=1_000):
            if record.offset < ends[TopicPartition(record.topic, record.partition)]:
                yield record


def clean(reading: bytes | None) -> bytes:
    """Raises ValueError for what is no reading."""
    fields = json.loads(reading or b"null")
    if not isinstance(fields, dict) or not isinstance(fields.get("celsius"), int | float):
        raise ValueError(f"no celsius in {reading!r}")
    return json.dumps({"kelvin": fields["celsius"] + 273.15}).encode()


def place(record: ConsumerRecord) -> str:
    return f"{record.topic}-{record.partition} at offset {record.offset}"


def main() -> int:
    parser = argparse.ArgumentParser(description="Cleans the readings that are there now.")
    parser.add_argument("--servers", help="HOST:PORT,... of a running cluster")
    parser.add_argument("--source", default="readings")
    parser.add_argument("--target", default="clean")
    given = parser.parse_args()
    try:
        if given.servers:
            return run(given.servers, given.source, given.target)
        with barnabas.Broker() as broker:
            for celsius in range(5):
                broker.topic(given.source).send(json.dumps({"celsius": celsius}))
            return run(broker.bootstrap_servers, given.source, given.target)
    except BarnabasError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return UNAVAILABLE


if __name__ == "__main__":
    sys.exit(main())
