"""A simulated process's clock and dice, and how a client of the simulated network gets them."""

from __future__ import annotations

from random import Random

from barnabas.client.channel import Seams, dial_tcp
from simulation.whole.loop import VirtualLoop

EPOCH_MS = 1_700_000_000_000
"""The time that a simulated calendar shows at the beginning."""


class VirtualClock:
    """The loop's time; `ahead_ms`: how far this machine's calendar is ahead of the others'."""

    __slots__ = ("_calendar_ms", "_loop")

    def __init__(self, loop: VirtualLoop, ahead_ms: int = 0) -> None:
        self._loop = loop
        self._calendar_ms = EPOCH_MS + ahead_ms

    def step(self, by_ms: int) -> None:
        """Set the calendar forwards or backwards, while the monotonic clock goes on."""
        self._calendar_ms += by_ms

    def monotonic_ms(self) -> int:
        return self._loop.now_us // 1000

    def wall_ms(self) -> int:
        return self._calendar_ms + self._loop.now_us // 1000


class SeededRandom:
    """Implements `clock.Random` from a seed and a name: each process has separate dice."""

    __slots__ = ("_source",)

    def __init__(self, seed: int, name: str) -> None:
        self._source = Random(f"{name} {seed}")

    def below(self, limit: int) -> int:
        return self._source.randrange(limit)

    def uuid(self) -> bytes:
        # The bits of a version-4 UUID; the first byte keeps its text from beginning with "-".
        raw = bytearray(self._source.randbytes(16))
        raw[0] &= 0x7F
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        return bytes(raw)


def client_seams(loop: VirtualLoop, seed: int, name: str) -> Seams:
    """Return the seams for Producer, Consumer and Admin.

    They run in a Life, whose host they connect from.
    """
    return Seams(VirtualClock(loop), SeededRandom(seed, name), dial_tcp)
