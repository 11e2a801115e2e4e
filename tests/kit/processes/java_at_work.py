"""A Java producer and Java group members that work while brokers die: the test's side of them."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.kit.clients import confluent_client, java_client
from tests.kit.clients.process_client import ProcessClient
from tests.kit.clients.rows import Field, Row
from tests.kit.processes.senders import LEAST_PER_LIFE

PROGRAM = Path(__file__).with_name("JavaUnderKills.java")


class Acknowledged(NamedTuple):
    partition: int
    offset: int
    number: int


class Reading(NamedTuple):
    """One record, as a member was given it, in its `assignment`-th assignment."""

    assignment: int
    partition: int
    offset: int
    value: bytes


class JavaAtWork:
    """Numbers go in turn to each partition, as many as allowed; may be waited for as a Sender.

    Any thread may ask.
    """

    def __init__(self, process: ProcessClient, servers: str, topic: str, partitions: int) -> None:
        confluent_client.create_topic(servers, topic, partitions, {}, replicas=3)
        self.topic = topic
        self.servers = servers
        self.sent_count = 0
        self.failed: list[object] = []
        self.readings: dict[str, list[Reading]] = defaultdict(list)
        self._process = process
        self._turn = threading.Lock()  # one request at a time
        self._enough_count = 0
        self._call("begin", servers, topic, partitions)

    # ---- the producer ----

    def allow(self, count: int) -> None:
        """Lets it send so many more than it has sent."""
        self._enough_count = self.acknowledged_count() + LEAST_PER_LIFE
        self._call("allow", count)

    def has_acknowledged_enough(self) -> bool:
        return self.acknowledged_count() >= self._enough_count

    def acknowledged_count(self) -> int:
        [[_, acknowledged, failed]] = self._call("counts")
        assert _int(failed) == 0
        return _int(acknowledged)

    def finish(self) -> list[Acknowledged]:
        """Everything that was acknowledged, when the fate of all that was sent is known."""
        self.failed = [row[0] for row in self._call("finish")]
        self.sent_count = _int(self._call("counts")[0][0])
        return [Acknowledged(*map(_int, row)) for row in self._call("acknowledged")]

    # ---- the group ----

    def join(self, name: str, group: str) -> None:
        self._call("join", name, self.servers, group, self.topic)
        self.readings[name] = []

    def values_read(self) -> set[int]:
        """By any member, until now."""
        for name, readings in self.readings.items():
            for assignment, partition, offset, value in self._call("read", name):
                assert value is not None
                where = (_int(assignment), _int(partition), _int(offset))
                readings.append(Reading(*where, value))
        return {int(one.value) for each in self.readings.values() for one in each}

    def leave(self) -> None:
        for name in self.readings:
            self._call("leave", name)

    def _call(self, *request: Field) -> list[Row]:
        with self._turn:
            return self._process.call(*request)


@contextmanager
def java_at_work(
    require: Callable[[], list[Path]], servers: str, topic: str, partitions: int
) -> Iterator[JavaAtWork]:
    """Of the version of the client that `require` names; its process ends with the block."""
    process = ProcessClient("java", java_client.command(require, PROGRAM))
    try:
        yield JavaAtWork(process, servers, topic, partitions)
    finally:
        process.close()


def _int(field: bytes | None) -> int:
    assert field is not None
    return int(field)
