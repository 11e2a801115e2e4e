"""Clock and Random: the only readers of time and of entropy (one of the four seams).

There are two times, and every use must choose one: an operator, NTP or a virtual machine may set
the wall clock at any moment, by any amount, and nothing under way may end early or last longer
because of that.
"""

from __future__ import annotations

import random
import time
from typing import Protocol


class Clock(Protocol):
    """The time. The simulator has a virtual one."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some instant; never smaller than an earlier result, whatever happens
        to the wall clock. For deadlines, sessions and schedules."""
        ...

    def wall_ms(self) -> int:
        """Milliseconds since the epoch by the wall clock, which is corrected in both directions.
        For times that are written into records or compared with those in records."""
        ...


spent_ns = time.perf_counter_ns
"""Nanoseconds since some instant, for how long work took: real time in the simulator, too."""


class SystemClock:
    """The machine's clocks."""

    __slots__ = ()

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class Random(Protocol):
    """Entropy. The simulator's is seeded."""

    def below(self, limit: int) -> int:
        """A number in `[0, limit)`; `limit` is positive."""
        ...

    def uuid(self) -> bytes:
        """Sixteen bytes that Kafka accepts as a topic or cluster id."""
        ...


_RESERVED_UUIDS = frozenset({bytes(16), bytes(15) + b"\x01"})


class SystemRandom:
    """The operating system's entropy."""

    __slots__ = ("_source",)

    def __init__(self) -> None:
        self._source = random.SystemRandom()

    def below(self, limit: int) -> int:
        return self._source.randrange(limit)

    def uuid(self) -> bytes:
        # Kafka never makes an id whose text starts with "-" (it would look like an option on a
        # command line), nor one of the two reserved ones. A version-4 UUID, as Java makes them.
        while True:
            raw = bytearray(self._source.randbytes(16))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            made = bytes(raw)
            if made not in _RESERVED_UUIDS and made[0] >> 2 != 62:
                return made
