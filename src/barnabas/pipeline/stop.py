"""Ctrl-C and SIGTERM: how a run is asked to end.

A run is interrupted where it is, and closes what it holds on its way out; the next run goes on. But
while Spark is at work an interrupt would tear the connection to its Java side, so then the request
is only noted (`patiently`), until it is made a second time.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """The request to end, and the signal that made it."""

    def __init__(self) -> None:
        self._is_patient = False
        self.requested = threading.Event()
        self.signal = 0

    def listen(self) -> None:
        """Take the signals over; again after a library has taken them. Main thread only."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """Here somebody looks at `requested` now and then."""
        self._is_patient = True
        try:
            yield
        finally:
            self._is_patient = False

    def wait(self, seconds: float) -> bool:
        """Sleep unless the end is asked for; whether it is."""
        return self.requested.wait(seconds)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_first = not self.requested.is_set()
        self.signal = number
        self.requested.set()
        if not (self._is_patient and is_first):
            raise KeyboardInterrupt
