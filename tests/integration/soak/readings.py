"""Readers that write down what they are given: one of everything, and the members of a group."""

from __future__ import annotations

import threading
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.integration.senders import PARTITIONS

JOIN_SECONDS = 60.0
_SESSION_MS, _HEARTBEAT_MS = 6_000, 500


class Reading(NamedTuple):
    """One record, as it was read in the reader's `assignment`-th assignment."""

    assignment: int
    partition: int
    offset: int
    value: bytes


class Reader:
    """Reads a topic from a thread of its own, from the beginning or in a group, until it is told
    to end. A member commits what it has read."""

    def __init__(self, servers: str, topic: str, group: str | None) -> None:
        self.readings: list[Reading] = []
        self.errors: list[str] = []
        self.refused_commits = 0
        self._assignment = 0
        self._is_member = group is not None
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group or "everything",
                "enable.auto.commit": False,
                # The first is of a group that begins; else to jump is to lose.
                "auto.offset.reset": "earliest" if group else "error",
                "isolation.level": "read_uncommitted",
                "session.timeout.ms": _SESSION_MS,
                "heartbeat.interval.ms": _HEARTBEAT_MS,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        if group is None:
            places = [TopicPartition(topic, number, 0) for number in range(PARTITIONS)]
            self._consumer.assign(places)
        else:
            self._consumer.subscribe([topic], on_assign=self._on_assign)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _on_assign(self, _: Consumer, __: list[TopicPartition]) -> None:
        self._assignment += 1

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._read()
        self._consumer.close()

    def _read(self) -> None:
        messages = self._consumer.consume(1_000, 0.2)
        for message in messages:
            if message.error() is not None:
                self.errors.append(str(message.error()))
                continue
            where = (self._assignment, message.partition(), message.offset())
            self.readings.append(Reading(*where, message.value()))
        if messages and self._is_member:
            try:
                self._consumer.commit(asynchronous=False)
            except KafkaException:
                # Others own it by now, or nobody coordinates: a later commit says the same.
                self.refused_commits += 1

    def positions(self) -> dict[int, int]:
        """One past the highest offset read, by partition."""
        found: dict[int, int] = {}
        for one in list(self.readings):
            found[one.partition] = max(found.get(one.partition, 0), one.offset + 1)
        return found

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(JOIN_SECONDS)
        assert not self._thread.is_alive(), "a reader does not end"
