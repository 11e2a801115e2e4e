"""Readers that write down what they are given: one of everything, and the members of a group.

librdkafka may stop for ever when a leader that it asks for the end of an epoch leaves the cluster's
metadata: two of its threads then wait for each other's locks (its issue 5476, open in 2.16), and
the consumer can neither read nor be closed. So somebody has to look after readers, as in
production.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.kit.clients.confluent_client import place_of, value_of
from tests.kit.processes.senders import PARTITIONS

JOIN_SECONDS = 60.0
_SESSION_MS, _HEARTBEAT_MS = 6_000, 500


class Reading(NamedTuple):
    """One record, as it was read in the reader's `assignment`-th assignment."""

    assignment: int
    partition: int
    offset: int
    value: bytes


class Reader:
    """Reads a topic from a thread of its own, from the beginning or in a group, until it is
    stopped. A member commits what it has read."""

    def __init__(
        self, servers: str, topic: str, group: str | None, begin: Mapping[int, int] | None = None
    ) -> None:
        """`begin`: the first offsets for one that is no member; 0 where it says nothing."""
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
            places = [
                TopicPartition(topic, number, (begin or {}).get(number, 0))
                for number in range(PARTITIONS)
            ]
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
            where = (self._assignment, *place_of(message))
            self.readings.append(Reading(*where, value_of(message)))
        if messages and self._is_member:
            try:
                self._consumer.commit(asynchronous=False)
            except KafkaException:
                # Others own it by now, or there is no coordinator: a later commit says the same.
                self.refused_commits += 1

    def positions(self) -> dict[int, int]:
        """One past the highest offset read, by partition."""
        return positions_of([self])

    def stop(self) -> bool:
        """False: its client hangs, and stays behind in its thread."""
        self._stopping.set()
        self._thread.join(JOIN_SECONDS)
        return not self._thread.is_alive()


class Readers:
    """So many at a time, one after the other in each place."""

    def __init__(self, begin: Callable[[Mapping[int, int]], Reader], count: int) -> None:
        """`begin` makes one that goes on at these positions, if it is no member of a group."""
        self.hung = 0
        self._begin = begin
        self._former: list[Reader] = []
        self._current = [begin({}) for _ in range(count)]

    @property
    def all(self) -> list[Reader]:
        return [*self._former, *self._current]

    def count(self) -> int:
        return sum(len(each.readings) for each in self.all)

    def positions(self) -> dict[int, int]:
        return positions_of(self.all)

    def replace_one(self) -> None:
        """One leaves, another comes."""
        leaving = self._current.pop(0)
        self._stop(leaving)
        self._former.append(leaving)
        self._current.append(self._begin(leaving.positions()))

    def replace_hung(self) -> None:
        """All readers, since none of them gets on; AssertionError unless a client hangs."""
        before = self.hung
        for _ in list(self._current):
            self.replace_one()
        errors = [each.errors[-3:] for each in self._former]
        assert self.hung > before, f"no client hangs, and nothing is read; last errors: {errors}"

    def stop(self) -> None:
        for each in self._current:
            self._stop(each)

    def _stop(self, reader: Reader) -> None:
        self.hung += not reader.stop()


def positions_of(readers: list[Reader]) -> dict[int, int]:
    """One past the highest offset read, by partition."""
    found: dict[int, int] = {}
    for each in readers:
        for one in list(each.readings):
            found[one.partition] = max(found.get(one.partition, 0), one.offset + 1)
    return found
