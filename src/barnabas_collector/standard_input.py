"""Collects the lines of standard input."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import sys
from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.errors import ConfigError
from barnabas_collector.bundle import Bundle, Origin
from barnabas_collector.headers import CUT, HOST
from barnabas_collector.inbox import Inbox
from barnabas_collector.line_cutter import Line, LineBlock, LineCutter
from barnabas_collector.record_joiner import RecordJoiner
from barnabas_collector.rotated_log import SETTLED_S
from barnabas_collector.shipment import Shipment

_READ_BYTES: Final = 262_144


class StandardInput:
    """Reads standard input, which may be a pipe, a terminal or a redirected file.

    A thread reads it, because an event loop cannot poll every kind of file. The key of every line
    is the collector's name, so all lines go to one partition and stay in order.
    """

    def __init__(self, shipment: Shipment) -> None:
        """Raises `ConfigError` if standard input is closed, because its descriptor may then refer
        to another file."""
        if sys.stdin is None:
            raise ConfigError("cannot read standard input: it is closed")
        self._descriptor = sys.stdin.fileno()
        self._origin = Origin(shipment.name.encode(), ((HOST, shipment.host.encode()),))
        self._cutter = LineCutter()
        self._joiner = None if shipment.is_start is None else RecordJoiner(shipment.is_start)

    async def run(self, inbox: Inbox, stopping: asyncio.Event) -> None:
        """Collect lines until the input ends or `stopping` is set.

        Raises `ConfigError` if it is unreadable.
        """
        with _alarm() as (alarm, ring):
            watching = asyncio.create_task(_ring(stopping, ring))
            try:
                while not stopping.is_set():
                    await inbox.room()
                    read = await asyncio.to_thread(self._read, alarm, self._patience_s())
                    if read == b"":
                        break
                    inbox.add(
                        self._bundles(self._take_waiting() if read is None else self._cut(read))
                    )
            finally:
                watching.cancel()
        inbox.add(self._bundles(self._last()))

    def _read(self, alarm: int, patience_s: float | None) -> bytes | None:
        """Return the next bytes. Return b"" at the end or after an alarm, or None if no bytes
        arrive within `patience_s`."""
        poll = select.poll()
        # A thread that waits for input cannot be cancelled, but the alarm's pipe wakes it.
        for descriptor in (self._descriptor, alarm):
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(None if patience_s is None else patience_s * 1_000)
        if not ready:
            return None
        if any(descriptor == alarm for descriptor, _ in ready):
            return b""
        try:
            return os.read(self._descriptor, _READ_BYTES)
        except OSError as error:
            raise ConfigError(f"cannot read standard input: {error.strerror}") from None

    def _patience_s(self) -> float | None:
        return SETTLED_S if self._joiner is not None and self._joiner.first else None

    def _cut(self, read: bytes) -> Sequence[Line]:
        lines = self._cutter.block(read)
        return lines if self._joiner is None else self._joiner.join(list(lines))

    def _last(self) -> list[Line]:
        return self._join(self._cutter.last()) + self._take_waiting()

    def _join(self, lines: list[Line]) -> list[Line]:
        return lines if self._joiner is None else self._joiner.join(lines)

    def _take_waiting(self) -> list[Line]:
        return [] if self._joiner is None else self._joiner.take()

    def _bundles(self, lines: Sequence[Line]) -> Iterator[Bundle]:
        if isinstance(lines, LineBlock):
            yield Bundle(self._origin, lines.texts)
            return
        texts: list[bytes] = []
        for line in lines:
            if line.is_cut:
                if texts:
                    yield Bundle(self._origin, texts)
                    texts = []
                origin = self._origin.with_header(CUT, b"%d" % line.size_bytes)
                yield Bundle(origin, [line.text], line.size_bytes)
            else:
                texts.append(line.text)
        if texts:
            yield Bundle(self._origin, texts)


@contextlib.contextmanager
def _alarm() -> Iterator[tuple[int, int]]:
    """Open a pipe and yield its two ends."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


async def _ring(stopping: asyncio.Event, ring: int) -> None:
    await stopping.wait()
    os.write(ring, b"!")
