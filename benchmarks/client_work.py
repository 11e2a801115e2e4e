"""What clients do to a broker while it is measured: confluent-kafka (librdkafka), as users have it.

Everything here knows a broker by its bootstrap servers only, so it does the same to any of them.
Values carry half a dozen text-like fields and some noise, so a codec finds about as much to do as
in logs.
"""

from __future__ import annotations

import multiprocessing
import random
import struct
import time
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

_TIMEOUT_SECONDS = 120.0
_TIME = struct.Struct("<q")
_SPAWN = multiprocessing.get_context("spawn")
_NOISE_SHARE = 5  # one byte in so many does not compress


class Load(NamedTuple):
    """Records to be produced, all with the same value."""

    records: int
    size: int
    partitions: int
    config: dict[str, Any] = {}
    producers: int = 1


class Latencies(NamedTuple):
    """Milliseconds, in order of size."""

    sorted_ms: list[float]

    def at(self, share: float) -> float:
        return self.sorted_ms[min(len(self.sorted_ms) - 1, int(len(self.sorted_ms) * share))]


def _common(servers: str) -> dict[str, Any]:
    return {"bootstrap.servers": servers, "log_level": 3}  # errors; it is chatty at its end


def create_topic(servers: str, topic: str, partitions: int, replicas: int = 1) -> None:
    admin = AdminClient(_common(servers))
    admin.create_topics([NewTopic(topic, partitions, replicas)])[topic].result(_TIMEOUT_SECONDS)
    for server in servers.split(",") if replicas > 1 else ():
        # The controller answers when it knows; the other brokers hear of it a little later.
        one = AdminClient(_common(server))
        while not _is_whole(one, topic, partitions):
            time.sleep(0.01)


def _is_whole(admin: AdminClient, topic: str, partitions: int) -> bool:
    found = admin.list_topics(topic, timeout=_TIMEOUT_SECONDS).topics[topic].partitions
    return len(found) == partitions and all(each.leader >= 0 for each in found.values())


def delete_topic(servers: str, topic: str) -> None:
    admin = AdminClient(_common(servers))
    admin.delete_topics([topic])[topic].result(_TIMEOUT_SECONDS)


def value_of(size: int) -> bytes:
    noise = random.Random(1).randbytes(size // _NOISE_SHARE)
    return noise + (b"GET /index.html 200 " * (size // 20 + 1))[: size - len(noise)]


def produce(servers: str, topic: str, load: Load) -> float:
    """All records acknowledged; the seconds it took. More producers are processes of their own."""
    if load.producers == 1:
        return _produce(servers, topic, load)
    share = load._replace(records=load.records // load.producers, producers=1)
    with _SPAWN.Pool(load.producers) as pool:
        pool.starmap(_produce, [(servers, topic, share._replace(records=1000))] * load.producers)
        began = time.perf_counter()
        pool.starmap(_produce, [(servers, topic, share)] * load.producers)
        return time.perf_counter() - began


def _produce(servers: str, topic: str, load: Load) -> float:
    producer = Producer(
        {
            **_common(servers),
            "acks": "all",
            "linger.ms": 5,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": 1_048_576,
            **load.config,
        }
    )
    producer.list_topics(topic, timeout=_TIMEOUT_SECONDS)  # connected before the clock starts
    value, partitions, send = value_of(load.size), load.partitions, producer.produce
    began = time.perf_counter()
    for number in range(load.records):
        while True:
            try:
                send(topic, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(_TIMEOUT_SECONDS):
        raise TimeoutError("not everything was acknowledged in time")
    return time.perf_counter() - began


def consume(servers: str, topic: str, load: Load) -> float:
    """Every record of the topic from its beginning; the seconds from the first one on."""
    consumer = _consumer(servers)
    consumer.assign([TopicPartition(topic, i, OFFSET_BEGINNING) for i in range(load.partitions)])
    began = time.perf_counter()
    missing = load.records // load.producers * load.producers
    while missing > 0:
        # It waits until it has as many as it was asked for.
        records = consumer.consume(min(10_000, missing), timeout=_TIMEOUT_SECONDS)
        if not records:
            raise TimeoutError(f"{missing} records did not come")
        missing -= len(records)
    seconds = time.perf_counter() - began
    consumer.close()
    return seconds


def _consumer(servers: str) -> Consumer:
    return Consumer(
        {
            **_common(servers),
            "group.id": "unused",
            "enable.auto.commit": False,
            # Without these it pauses for a second whenever its queue is full.
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": 1_048_576,
            "fetch.queue.backoff.ms": 2,
        }
    )


def one_at_a_time(servers: str, topic: str, count: int) -> Latencies:
    """A record, its acknowledgement by all, the next record."""
    producer = Producer({**_common(servers), "acks": "all", "linger.ms": 0})
    value = value_of(100)
    acknowledged: list[bool] = []

    def done(error: Any, record: Any) -> None:
        if error is not None:
            raise ConnectionError(str(error))
        acknowledged.append(True)

    taken = []
    for _ in range(count):
        began = time.perf_counter()
        producer.produce(topic, value, partition=0, on_delivery=done)
        while not acknowledged:
            if not producer.poll(_TIMEOUT_SECONDS):
                raise TimeoutError("no acknowledgement came")
        taken.append((time.perf_counter() - began) * 1000)
        acknowledged.clear()
    return Latencies(sorted(taken))


def end_to_end(servers: str, topic: str, per_second: int, seconds: float) -> Latencies:
    """From `produce` in another process to the return of `poll` in this one, by the same clock."""
    consumer = _consumer(servers)
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
    while consumer.position([TopicPartition(topic, 0)])[0].offset < 0:
        consumer.poll(0.1)
        if consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1] == 0:
            break
    time.sleep(0.5)  # its first long poll is parked
    count = int(per_second * seconds)
    sender = _SPAWN.Process(target=_send_paced, args=(servers, topic, per_second, count))
    sender.start()
    taken = delays_ms(consumer, count)
    sender.join()
    consumer.close()
    return Latencies(sorted(taken[count // 10 :]))  # the first tenth warms the connections up


def delays_ms(consumer: Consumer, count: int) -> list[float]:
    """How old each of the next records is, by the time that it begins with; raises TimeoutError."""
    taken: list[float] = []
    while len(taken) < count:
        record = consumer.poll(_TIMEOUT_SECONDS)
        now = time.monotonic_ns()
        if record is None:
            raise TimeoutError("no record came")
        if record.error() is None:
            taken.append((now - _TIME.unpack_from(record.value() or b"")[0]) / 1e6)
    return taken


def _send_paced(servers: str, topic: str, per_second: int, count: int) -> None:
    producer = Producer({**_common(servers), "acks": "all", "linger.ms": 0})
    rest = value_of(100)[_TIME.size :]
    producer.list_topics(topic, timeout=_TIMEOUT_SECONDS)
    began = time.monotonic()
    for number in range(count):
        wait = began + number / per_second - time.monotonic()
        if wait > 0:
            time.sleep(wait)
        value = _TIME.pack(time.monotonic_ns()) + rest
        producer.produce(topic, value, partition=0)
        producer.poll(0)
    producer.flush(_TIMEOUT_SECONDS)


def end_offset(servers: str, topic: str) -> int:
    """Behind the last record of partition 0."""
    consumer = _consumer(servers)
    _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_TIMEOUT_SECONDS)
    consumer.close()
    return high
