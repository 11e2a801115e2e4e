"""Consume, transform and produce in transactions, from a thread: a stream whose output is exact."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.kit.clients import confluent_client

AT_ONCE = 1_000
ABORT_EVERY = 7
QUIET = {"socket.timeout.ms": 5_000, "reconnect.backoff.max.ms": 200, "log_level": 0}
_CALL_SECONDS = 20.0


class Pump:
    """Copies each record with an `x` in front to the same partition of another topic.

    The positions are in the transactions, some of which it aborts. After any error it begins anew
    with what is committed, as streams do.
    """

    def __init__(self, servers: str, source: str, target: str) -> None:
        self._servers = servers
        self._source, self._target = source, target
        self._stopping = threading.Event()
        self.committed_count = 0
        self.renewal_count = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Return when its transaction has ended."""
        self._stopping.set()
        self._thread.join(120)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            consumer = self._consumer()
            try:
                self._pump(consumer)
            except (KafkaException, _Stuck):
                self.renewal_count += 1
            finally:
                consumer.close()

    def _consumer(self) -> Consumer:
        settings = {"bootstrap.servers": self._servers, "group.id": "pump", **QUIET}
        return Consumer(
            {
                **settings,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "session.timeout.ms": 6_000,
            }
        )

    def _pump(self, consumer: Consumer) -> None:
        settings = {"bootstrap.servers": self._servers, "transactional.id": "pump", **QUIET}
        producer = Producer({**settings, "linger.ms": 0})
        producer.init_transactions(_CALL_SECONDS)
        consumer.subscribe([self._source])
        number = 0
        while not self._stopping.is_set():
            read = [each for each in consumer.consume(AT_ONCE, 0.1) if each.error() is None]
            if not read:
                continue
            number += 1
            producer.begin_transaction()
            try:
                self._move(producer, consumer, read)
                if number % ABORT_EVERY == 0:
                    raise _Aborted
                _commit(producer)
            except (KafkaException, BufferError, _Aborted) as error:
                with suppress(KafkaException):
                    producer.abort_transaction(_CALL_SECONDS)
                if isinstance(error, KafkaException):
                    raise
                for partition, offset in _firsts(read).items():
                    consumer.seek(TopicPartition(self._source, partition, offset))
            else:
                self.committed_count += len(read)

    def _move(self, producer: Producer, consumer: Consumer, read: list[Message]) -> None:
        ends = {}
        for message in read:
            partition, offset = _place(message)
            value = b"x" + confluent_client.value_of(message)
            producer.produce(self._target, value, partition=partition)
            ends[partition] = offset + 1
        offsets = [TopicPartition(self._source, *each) for each in ends.items()]
        _send_offsets(producer, consumer, offsets)


class _Aborted(Exception):
    """What this transaction did is undone on purpose."""


class _Stuck(Exception):
    """The producer does not return from a call; the next one fences it."""


def _send_offsets(producer: Producer, consumer: Consumer, offsets: list[TopicPartition]) -> None:
    """librdkafka may wait for a group coordinator that has stopped until a connection changes.

    It ignores the timeout of the call then (its issues 5456 and 5511), so this waits elsewhere.
    """
    group = consumer.consumer_group_metadata()
    outcome: Future[None] = Future()

    def send() -> None:
        try:
            producer.send_offsets_to_transaction(offsets, group, _CALL_SECONDS)
        except KafkaException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=send, daemon=True).start()
    try:
        outcome.result(_CALL_SECONDS + 5)
    except TimeoutError:
        raise _Stuck from None


def _commit(producer: Producer) -> None:
    while True:
        try:
            producer.commit_transaction(_CALL_SECONDS)
            return
        except KafkaException as error:
            if not error.args[0].retriable():
                raise


def _firsts(read: list[Message]) -> dict[int, int]:
    firsts: dict[int, int] = {}
    for message in read:
        firsts.setdefault(*_place(message))
    return firsts


def _place(message: Message) -> tuple[int, int]:
    """Its partition and its offset."""
    partition, offset = message.partition(), message.offset()
    assert partition is not None and offset is not None
    return partition, offset
