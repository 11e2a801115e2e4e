"""What a run of whole brokers is made of: drawn from the seed, and said in one line.

The same dice as those of the machines' simulation (`simulation.options`), with what only a whole
broker has: a disk that fills up or breaks, clean stops, connections that are torn or starve.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from barnabas.simulation.options import Fault

FAULTS = (
    "kill",
    "bounce",
    "power",
    "power all",
    "stop",
    "pause",
    "cut",
    "cut clients",
    "isolate",
    "reset",
    "slow",
    "store cut",
    "expire",
    "store away",
    "disk full",
    "disk broken",
    "preferred",
    "reassign",
)
_ALWAYS = ("kill", "power", "pause", "isolate")
_BEGIN_MS = 1500


class Plan(NamedTuple):
    """One run."""

    seed: int
    brokers: int = 3
    partitions: int = 2
    lag_time_max_ms: int = 2000
    session_timeout_ms: int = 2000
    flush_interval_messages: int = 1
    group_members: int = 2
    faults_end_at_ms: int = 15_000
    faults: tuple[Fault, ...] = ()

    def text(self) -> str:
        """All but the faults."""
        flush = self.flush_interval_messages
        return (
            f"{self.brokers} brokers, {self.partitions} partitions of each topic, sessions of "
            f"{self.session_timeout_ms} ms, replica.lag.time.max.ms {self.lag_time_max_ms}, "
            f"{'every record' if flush == 1 else 'nothing'} is flushed at once, "
            f"{self.group_members} in the group"
        )


def draw(seed: int) -> Plan:
    """The plan of a seed; the run itself has dice of its own."""
    random = Random(f"plan {seed}")
    brokers = random.choice((3, 3, 3, 4))
    kinds = [kind for kind in FAULTS if kind in _ALWAYS or random.random() < 0.5]
    end_ms = random.choice((10_000, 14_000, 18_000))
    return Plan(
        seed,
        brokers,
        partitions=random.choice((1, 2, 2, 3)),
        lag_time_max_ms=random.choice((1000, 2000, 4000)),
        session_timeout_ms=random.choice((1000, 2000, 3000)),
        flush_interval_messages=random.choice((1, 1_000_000)),
        group_members=random.choice((1, 2, 3)),
        faults_end_at_ms=end_ms,
        faults=_draw_faults(random, brokers, kinds, end_ms),
    )


def _draw_faults(random: Random, brokers: int, kinds: list[str], end_ms: int) -> tuple[Fault, ...]:
    gap_ms = random.choice((700, 1200, 2000))
    faults: list[Fault] = []
    at_ms = _BEGIN_MS
    while True:
        # Faults come in flurries: most of what goes wrong needs two things at nearly one time.
        wait_ms = random.expovariate(1 / gap_ms) if random.random() < 0.6 else random.random() * 60
        at_ms += int(wait_ms)
        if at_ms >= end_ms:
            return tuple(faults)
        first, second = random.sample(range(1, brokers + 1), 2)
        for_ms = int(random.choice((50, 400, 1500, 4000)) * (0.5 + random.random()))
        faults.append(Fault(at_ms, random.choice(kinds), first, second, for_ms))
