"""Handles Ctrl-C and SIGTERM as requests to end a run.

A run is interrupted immediately and closes its resources as it exits; the next run continues from
the same point. While Spark is working, however, an interrupt would break the connection to its Java
side. The first request is then only recorded (`patiently`); a second one interrupts.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Represents a request to end a run, and the signal by which it was made."""

    def __init__(self) -> None:
        self._is_patient = False
        self.requested = threading.Event()
        self.signal = 0

    def listen(self) -> None:
        """Handle the signals.

        Call it again after a library has replaced the handlers, and only in the main thread.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """Run a block that checks `requested` at intervals and is not interrupted by the first
        request.
        """
        self._is_patient = True
        try:
            yield
        finally:
            self._is_patient = False

    def wait(self, seconds: float) -> bool:
        """Wait for this long, or until the end of the run is requested. Return whether it was
        requested.
        """
        return self.requested.wait(seconds)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_first = not self.requested.is_set()
        self.signal = number
        self.requested.set()
        # A second signal interrupts even Spark, because the user does not want to wait.
        if not (self._is_patient and is_first):
            raise KeyboardInterrupt
