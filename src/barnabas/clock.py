"""Defines Clock and Random, the only code that reads the time and entropy (one of the four seams).

There are two clocks, and every caller must choose one of them. An operator, NTP or a virtual
machine may set the wall clock at any moment and by any amount, and this must not shorten or
lengthen anything that is in progress.
"""

from __future__ import annotations

import os
import time
from typing import Protocol


class Clock(Protocol):
    """Provides the time. The simulator uses a virtual clock."""

    def monotonic_ms(self) -> int:
        """Return the milliseconds since an arbitrary instant. The result is never less than an
        earlier result, whatever happens to the wall clock. Use it for deadlines, sessions and
        schedules.
        """
        ...

    def wall_ms(self) -> int:
        """Return the milliseconds since the epoch according to the wall clock, which may be
        corrected in either direction. Use it for times that are written into records or compared
        with times in records.
        """
        ...


spent_ns = time.perf_counter_ns
"""Returns the nanoseconds since an arbitrary instant, to measure how long work took. This is real
time, even in the simulator.
"""

thread_cpu_ns = time.thread_time_ns
"""Returns the CPU time in nanoseconds used by the calling thread. This is real CPU time, even in
the simulator.
"""

process_cpu_ns = time.process_time_ns
"""Returns the CPU time in nanoseconds used by all threads of the process. This is real CPU time,
even in the simulator.
"""


class SystemClock:
    """Provides the time of the machine's clocks."""

    __slots__ = ()

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000


class Random(Protocol):
    """Provides entropy. The simulator uses a seeded source."""

    def below(self, limit: int) -> int:
        """Return a number in `[0, limit)`. `limit` must be positive."""
        ...

    def uuid(self) -> bytes:
        """Return sixteen random bytes that Kafka accepts as a topic or cluster id."""
        ...


_RESERVED_UUIDS = frozenset({bytes(16), bytes(15) + b"\x01"})


class SystemRandom:
    """Provides the operating system's entropy."""

    __slots__ = ()

    def below(self, limit: int) -> int:
        # This is the method of Python's SystemRandom, whose module takes a millisecond to load.
        bits = limit.bit_length()
        while True:
            number = int.from_bytes(os.urandom((bits + 7) // 8)) >> -bits % 8
            if number < limit:
                return number

    def uuid(self) -> bytes:
        # Kafka never generates an id whose text starts with "-" (on a command line it would look
        # like an option), nor either of the two reserved ids. Like Java, this makes a version-4
        # UUID.
        while True:
            raw = bytearray(os.urandom(16))
            raw[6] = raw[6] & 0x0F | 0x40
            raw[8] = raw[8] & 0x3F | 0x80
            made = bytes(raw)
            if made not in _RESERVED_UUIDS and made[0] >> 2 != 62:
                return made
