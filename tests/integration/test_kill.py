"""A broker that is killed under load, again and again, loses nothing that it has acknowledged."""

from __future__ import annotations

import itertools
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from barnabas.client import SyncProducer
from barnabas.client.sync import SyncDelivery
from tests.conformance import confluent_client
from tests.integration.broker_process import broker_process, wait_until

pytestmark = pytest.mark.slow

KILLS = 20
PARTITIONS = 2
IN_FLIGHT = 500
LEAST_PER_LIFE = 2_700  # so many of each sender are acknowledged between two kills
LEAST_IN_ALL = 100_000
BURST = 5_000  # enough to outlast the wait before a kill
LONGEST_WAIT_SECONDS = 0.02
# Also how long a test that failed waits for its senders: longer than any start of the broker.
GIVE_UP_MS = 60_000


@pytest.mark.timeout(240)
def test_acknowledged_records_are_there_once_and_in_order_after_twenty_kills(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """PR-4, PR-6, ST-8, DL-1: what an idempotent producer repeats is told apart.

    Both producers are in the middle of a burst when the broker is killed, so that many kills fall
    between an append and its answer: with librdkafka's idempotence off this test fails.
    """
    with broker_process(tmp_path, "log.segment.bytes=65536") as broker:
        servers = broker.bootstrap_servers
        with sending(ConfluentSender, servers) as theirs, sending(OwnSender, servers) as ours:
            senders = (theirs, ours)
            for _ in range(KILLS):
                for sender in senders:
                    sender.allow(LEAST_PER_LIFE + BURST)
                for sender in senders:
                    wait_until(sender.has_acknowledged_enough)
                for sender in senders:
                    sender.allow(BURST)
                time.sleep(random.uniform(0, LONGEST_WAIT_SECONDS))
                broker.kill()
                broker.start()
            for sender in senders:
                sender.stop()
        for sender in senders:
            check(sender, servers)
        counts = {sender.topic: sender.acknowledged_count() for sender in senders}
        record_property("acknowledged", counts)
        print(f"{KILLS} kills; acknowledged, and there once and in order: {counts}")
        assert sum(counts.values()) >= LEAST_IN_ALL


def check(sender: Sender, servers: str) -> None:
    """In the end all was acknowledged: the log holds what was sent, as it was sent."""
    assert sender.failed == []
    seen = confluent_client.consume(servers, sender.topic, PARTITIONS, sender.sent_count)
    for partition in range(PARTITIONS):
        stored = [int(one.value or b"") for one in seen if one.partition == partition]
        sent = list(range(partition, sender.sent_count, PARTITIONS))
        # Outside of the assertions, lest they print a hundred thousand numbers.
        wrong = first_difference(stored, sent)
        assert wrong is None, f"{sender.topic} holds something else"
        wrong = first_difference(sender.acknowledged[partition], sent)
        assert wrong is None, f"{sender.topic} was acknowledged otherwise"


@contextmanager
def sending(make: Callable[[str], Sender], servers: str) -> Iterator[Sender]:
    """A sender whose thread has ended when the block has, in whatever way.

    A thread left in librdkafka's callbacks keeps the interpreter from ending.
    """
    sender = make(servers)
    try:
        yield sender
    finally:
        sender.stop()


def first_difference(
    left: list[int], right: list[int]
) -> tuple[int, int | None, int | None] | None:
    """The first index at which two lists differ, with what stands there."""
    for index, (one, other) in enumerate(itertools.zip_longest(left, right)):
        if one != other:
            return index, one, other
    return None


class Sender(ABC):
    """Sends numbers, in turn to each partition, from a thread of its own, as many as allowed."""

    def __init__(self, servers: str, topic: str) -> None:
        confluent_client.create_topic(servers, topic, PARTITIONS, {})
        self.topic = topic
        self.sent_count = 0
        self._allowed_count = 0
        self._enough_count = 0
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.failed: list[object] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged))

    def allow(self, count: int) -> None:
        """Lets it send so many more than it has sent."""
        self._enough_count = self.acknowledged_count() + LEAST_PER_LIFE
        self._allowed_count = self.sent_count + count

    def has_acknowledged_enough(self) -> bool:
        """Whether `LEAST_PER_LIFE` were acknowledged since `allow`."""
        return self.acknowledged_count() >= self._enough_count

    def stop(self) -> None:
        """Returns when everything that was sent is acknowledged or failed; may be called twice."""
        self._stopping.set()
        self._thread.join(2 * GIVE_UP_MS / 1000)
        assert not self._thread.is_alive(), f"{self.topic}: no outcome in time"

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self.sent_count < self._allowed_count:
                self._send(self.sent_count, self.sent_count % PARTITIONS)
                self.sent_count += 1
            else:
                self._idle()
        self._finish()

    @abstractmethod
    def _send(self, number: int, partition: int) -> None:
        """Hands over one record; waits while `IN_FLIGHT` others are unanswered."""

    @abstractmethod
    def _idle(self) -> None:
        """Takes in answers for about a millisecond."""

    @abstractmethod
    def _finish(self) -> None:
        """Waits for all outcomes."""

    def _report(self, number: int, partition: int, error: object) -> None:
        if error is None:
            self.acknowledged[partition].append(number)
        else:
            self.failed.append(error)


class ConfluentSender(Sender):
    """librdkafka's idempotent producer."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                # Many small requests, so that one is nearly always on its way when a kill comes.
                "linger.ms": 0,
                "batch.num.messages": 20,
                "message.timeout.ms": GIVE_UP_MS,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "log_level": 0,
            }
        )
        super().__init__(servers, "sent-by-confluent-kafka")

    def _send(self, number: int, partition: int) -> None:
        def delivered(error: KafkaError | None, _: Message) -> None:
            self._report(number, partition, error)

        value = b"%d" % number
        self._producer.produce(self.topic, value, partition=partition, on_delivery=delivered)
        self._producer.poll(0)
        while len(self._producer) > IN_FLIGHT and not self._stopping.is_set():
            self._producer.poll(0.01)

    def _idle(self) -> None:
        self._producer.poll(0.001)

    def _finish(self) -> None:
        self._producer.flush(GIVE_UP_MS / 1000)


class OwnSender(Sender):
    """Our own producer, idempotent by default."""

    def __init__(self, servers: str) -> None:
        self._producer = SyncProducer(servers, delivery_timeout_ms=GIVE_UP_MS)
        self._unanswered: deque[tuple[int, int, SyncDelivery]] = deque()
        super().__init__(servers, "sent-by-barnabas")

    def _send(self, number: int, partition: int) -> None:
        delivery = self._producer.send(self.topic, b"%d" % number, partition=partition)
        self._unanswered.append((number, partition, delivery))
        if len(self._unanswered) > IN_FLIGHT:
            self._await_oldest()

    def _idle(self) -> None:
        if self._unanswered:
            self._await_oldest()
        else:
            time.sleep(0.001)

    def _finish(self) -> None:
        while self._unanswered:
            self._await_oldest()
        self._producer.close()

    def _await_oldest(self) -> None:
        number, partition, delivery = self._unanswered.popleft()
        self._report(number, partition, delivery.exception())
