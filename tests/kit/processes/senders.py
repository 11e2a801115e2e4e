"""Producers that send numbers from threads of their own, and what was acknowledged of them."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import KafkaError, Message, Producer

from barnabas.client import SyncProducer
from barnabas.client.sync.producer import SyncDelivery
from tests.kit.clients import confluent_client

PARTITIONS = 2
IN_FLIGHT = 500
LEAST_PER_LIFE = 2_700  # so many of each sender are acknowledged between two kills
# Also how long a test that failed waits for its senders: longer than any start of a broker.
GIVE_UP_MS = 180_000


class Sender(ABC):
    """Sends numbers, in turn to each partition, from a thread of its own, as many as allowed."""

    def __init__(self, servers: str, topic: str, replicas: int) -> None:
        confluent_client.create_topic(servers, topic, PARTITIONS, {}, replicas=replicas)
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

    def __init__(self, servers: str, replicas: int, settings: Mapping[str, int] = {}) -> None:
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
                **settings,
            }
        )
        super().__init__(servers, "sent-by-confluent-kafka", replicas)

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

    def __init__(self, servers: str, replicas: int, in_flight: int = 5) -> None:
        self._producer = SyncProducer(
            servers,
            delivery_timeout_ms=GIVE_UP_MS,
            max_in_flight_requests_per_connection=in_flight,
        )
        self._unanswered: deque[tuple[int, int, SyncDelivery]] = deque()
        super().__init__(servers, "sent-by-barnabas", replicas)

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


@contextmanager
def sending(
    make: Callable[[str, int], Sender], servers: str, replicas: int = 1
) -> Iterator[Sender]:
    """A sender whose thread has ended when the block has, in whatever way.

    A thread left in librdkafka's callbacks keeps the interpreter from ending.
    """
    sender = make(servers, replicas)
    try:
        yield sender
    finally:
        sender.stop()
