"""A topic that comes and goes under one name while retention looks at everything each second."""

from __future__ import annotations

import threading
import time

from barnabas.client import NewTopic, SyncAdmin, SyncConsumer, SyncProducer
from barnabas.errors import (
    BarnabasError,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from barnabas.types import TopicPartition
from tests.integration.soak.readings import JOIN_SECONDS
from tests.kit.processes.senders import PARTITIONS

_RECORDS = 60
_PATIENCE_MS = 15_000
_CYCLE_S = 120.0
_PAUSE_S = 0.2


class Passing:
    """Makes the topic, writes to it, reads it back and deletes it, again and again.

    What is judged is what one life of it acknowledged and read: whatever a fault interrupts ends
    that life early.
    """

    topic = "passing"

    def __init__(self, servers: str) -> None:
        self.lives = 0
        self.whole_lives = 0
        """Of these, in which everything was acknowledged, read back and deleted."""
        self.wrong: list[str] = []
        self._servers = servers
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(2 * _CYCLE_S + JOIN_SECONDS)
        assert not self._thread.is_alive(), f"{self.topic}: does not end"

    def _run(self) -> None:
        while not self._stopping.wait(_PAUSE_S):
            try:
                self._make()
                self.lives += 1
                acknowledged = self._write()
                self._read_back(acknowledged)
                is_whole = len(acknowledged) == _RECORDS
            except BarnabasError:
                is_whole = False  # a fault: the next life says whether all is well again
            self.whole_lives += self._delete() and is_whole

    def _make(self) -> None:
        with SyncAdmin(self._servers) as admin:
            try:
                admin.create_topics([NewTopic(self.topic, PARTITIONS)])
            except TopicAlreadyExists:
                return  # made by a request whose answer was lost

    def _write(self) -> dict[tuple[int, int], bytes]:
        """What was acknowledged, by partition and offset."""
        with SyncProducer(
            self._servers, allow_auto_create_topics=False, delivery_timeout_ms=_PATIENCE_MS,
            request_timeout_ms=_PATIENCE_MS // 2,
        ) as producer:  # fmt: skip
            deliveries = [
                producer.send(self.topic, b"%d %d" % (self.lives, n), partition=n % PARTITIONS)
                for n in range(_RECORDS)
            ]
            acknowledged = {}
            for number, delivery in enumerate(deliveries):
                if delivery.exception() is None:
                    placed = delivery.result()
                    value = b"%d %d" % (self.lives, number)
                    acknowledged[placed.partition, placed.offset] = value
            return acknowledged

    def _read_back(self, acknowledged: dict[tuple[int, int], bytes]) -> None:
        """All that was acknowledged is there, and nothing of an earlier life."""
        found: dict[tuple[int, int], bytes] = {}
        ends_at = time.monotonic() + _CYCLE_S
        with SyncConsumer(
            self._servers, auto_offset_reset="earliest", allow_auto_create_topics=False
        ) as consumer:
            consumer.assign([TopicPartition(self.topic, n) for n in range(PARTITIONS)])
            while acknowledged.keys() - found.keys() and time.monotonic() < ends_at:
                for one in consumer.poll(timeout_ms=500):
                    found[one.partition, one.offset] = one.value or b""
        for place, value in acknowledged.items():
            if found.get(place) != value:
                self.wrong.append(f"{place}: {value!r} was acknowledged, {found.get(place)!r} read")
        own = b"%d " % self.lives
        self.wrong += [
            f"{place}: {value!r} is of another life than {self.lives}"
            for place, value in found.items()
            if not value.startswith(own)
        ]

    def _delete(self) -> bool:
        """Whether it is gone, which it is unless this ends first."""
        while not self._stopping.wait(_PAUSE_S):
            try:
                with SyncAdmin(self._servers) as admin:
                    admin.delete_topics([self.topic])
            except UnknownTopicOrPartition:
                return True
            except BarnabasError:
                continue  # asked again
        return False
