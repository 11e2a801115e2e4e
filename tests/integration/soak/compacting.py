"""A topic that is compacted while it is written to, and what must be left of it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from barnabas.client import NewTopic, SyncAdmin
from tests.kit.clients.confluent_client import value_of
from tests.kit.processes.senders import GIVE_UP_MS, PARTITIONS

CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "16384",
    "min.cleanable.dirty.ratio": "0.01",
}
KEYS = 40

_PAUSE_S = 0.005
_READ_S = 120.0


class Kept(NamedTuple):
    """A record, as it was acknowledged or as it was read; no two have the same value."""

    partition: int
    offset: int | None
    """None if librdkafka does not know it: it sent the batch again, to a leader that knows only
    that a later one of this producer is stored."""
    key: bytes
    value: bytes


class Compacting:
    """Sends a newer value for one of few keys, in turn, again and again."""

    topic = "compacted"

    def __init__(self, servers: str) -> None:
        self.acknowledged: list[Kept] = []
        self.failed: list[str] = []
        self._servers = servers
        with SyncAdmin(servers) as admin:
            admin.create_topics([NewTopic(self.topic, PARTITIONS, configs=CONFIGS)])
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                # What waits while all brokers are away has to fit into segments.
                "batch.size": 8_192,
                "message.timeout.ms": GIVE_UP_MS,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopping.wait(_PAUSE_S):
            key = number % KEYS
            self._producer.produce(
                self.topic,
                b"%d" % number,
                b"key %d" % key,
                partition=key % PARTITIONS,
                on_delivery=self._delivered,
            )
            self._producer.poll(0)
            number += 1
        self._producer.flush(GIVE_UP_MS / 1000)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
            return
        partition, key = message.partition(), message.key()
        assert partition is not None and key is not None
        self.acknowledged.append(Kept(partition, message.offset(), key, value_of(message)))

    def stop(self) -> None:
        """Every record has its outcome."""
        self._stopping.set()
        self._thread.join(2 * GIVE_UP_MS / 1000)
        assert not self._thread.is_alive(), f"{self.topic}: no outcome in time"

    def read(self) -> list[Kept]:
        """What is left, from the beginning to the end of each partition."""
        found: list[Kept] = []
        at_end: set[int] = set()
        with_end = {"enable.partition.eof": True, "auto.offset.reset": "error", "log_level": 0}
        consumer = Consumer(
            {"bootstrap.servers": self._servers, "group.id": "none", "enable.auto.commit": False}
            | with_end
        )
        try:
            places = [TopicPartition(self.topic, n, OFFSET_BEGINNING) for n in range(PARTITIONS)]
            consumer.assign(places)
            for _ in range(int(_READ_S)):
                for one in consumer.consume(10_000, 1.0):
                    error, partition, key = one.error(), one.partition(), one.key()
                    assert partition is not None
                    if error is None:
                        assert key is not None
                        found.append(Kept(partition, one.offset(), key, value_of(one)))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        at_end.add(partition)
                    else:
                        raise AssertionError(f"{self.topic} cannot be read: {error}")
                if len(at_end) == PARTITIONS:
                    return found
        finally:
            consumer.close()
        raise AssertionError(f"{self.topic}: no end after {_READ_S:.0f} s: {sorted(at_end)}")


def wrongly_compacted(acknowledged: list[Kept], found: list[Kept]) -> list[str]:
    """ST-7: what is left was acknowledged at that offset, in order; the newest of each key is."""
    sent = {one.value: one for one in acknowledged}
    wrong = [f"{one} is there, but was never acknowledged so" for one in found
             if not _is_same(sent.get(one.value), one)]  # fmt: skip
    last: dict[int, int] = {}
    for one in found:
        number = int(one.value)
        if number <= last.get(one.partition, -1):
            wrong.append(f"{one} is behind {last[one.partition]}")
        last[one.partition] = number
    newest_found, newest_sent = _newest(found), _newest(acknowledged)
    wrong += [
        f"{key!r}: the newest is {one}, and {newest_found.get(key)} was read"
        for key, one in newest_sent.items()
        if not _is_same(one, newest_found.get(key))
    ]
    if len(found) >= len(acknowledged):
        wrong.append(f"nothing was compacted: {len(found)} of {len(acknowledged)} are there")
    return wrong


def _is_same(acknowledged: Kept | None, found: Kept | None) -> bool:
    if acknowledged is None or found is None:
        return False
    if acknowledged.offset is None:
        return acknowledged == found._replace(offset=None)
    return acknowledged == found


def _newest(records: list[Kept]) -> Mapping[bytes, Kept]:
    newest: dict[bytes, Kept] = {}
    for one in sorted(records, key=lambda each: int(each.value)):
        newest[one.key] = one
    return newest
