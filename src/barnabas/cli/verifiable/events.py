"""Prints the events of the verifiable clients: one JSON object per line, like Kafka's tools."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from barnabas.clock import SystemClock


class Events:
    """Writes events immediately. SIGTERM, Ctrl-C or a closed pipe sets `stopping`."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self._clock = SystemClock()
        self._is_broken = False

    def write(self, name: str, **fields: Any) -> None:
        event = {"timestamp": self._clock.wall_ms(), "name": name, **fields}
        if self._is_broken:
            return
        try:
            sys.stdout.write(json.dumps(event, separators=(",", ":"), ensure_ascii=False) + "\n")
            sys.stdout.flush()
        # Raise this only at the end, because raising it earlier would leave a client open.
        except BrokenPipeError:
            self._is_broken = True
            self.stopping.set()

    @contextmanager
    def until_stopped(self) -> Iterator[None]:
        """Print `startup_complete` and, at the end, `shutdown_complete`. May end with
        BrokenPipeError.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        self.write("startup_complete")
        yield
        self.write("shutdown_complete")
        if self._is_broken:
            raise BrokenPipeError


def text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
