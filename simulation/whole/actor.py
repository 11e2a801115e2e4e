"""The base of all clients of the workload: a name, and one life after another.

Each life has its own producer, consumer or both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from random import Random

from barnabas.client import Consumer, ConsumerRecord, Producer
from barnabas.client.errors import Unreachable
from barnabas.types import TopicPartition
from simulation.whole.environment import Environment
from simulation.whole.history import Read, Stretch


class Actor(ABC):
    """One client of the workload."""

    def __init__(self, around: Environment, name: str, random: Random) -> None:
        self.name = name
        self._around = around
        self._random = random
        self._lives = 0

    @abstractmethod
    async def run(self) -> None:
        """Run the client; returns when it is done, after all clients have been asked to stop."""

    @property
    def _who(self) -> str:
        """Its name in this life."""
        return f"{self.name}.{self._lives}"

    def _notes(self, stretch: Stretch, records: Iterable[ConsumerRecord]) -> None:
        """Record the polled records."""
        for record in records:
            name = TopicPartition(record.topic, record.partition)
            self._around.history.reads(stretch, name, Read(record.offset, record.value or b""))


async def has_started(client: Producer | Consumer, around: Environment, random: Random) -> bool:
    """Start the client; returns False, after a rest, if no broker can be reached."""
    try:
        await client.start()
    except Unreachable:
        await around.rest(random, 1_000)
        return False
    return True
