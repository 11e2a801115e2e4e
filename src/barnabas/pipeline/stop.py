"""Ctrl-C and SIGTERM: how a run is asked to end.

A service ends when it next looks at `requested`; asked a second time, or when it is a single run,
it is interrupted where it is: what it holds is closed on the way out, and the next run goes on.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType


class Stop:
    """The request to end, and the signal that made it."""

    def __init__(self, *, is_service: bool) -> None:
        self._is_service = is_service
        self.requested = threading.Event()
        self.signal = 0

    def listen(self) -> None:
        """Take the signals over; again after a library has taken them. Main thread only."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def wait(self, seconds: float) -> bool:
        """Sleep unless the end is asked for; whether it is."""
        return self.requested.wait(seconds)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_first = not self.requested.is_set()
        self.signal = number
        self.requested.set()
        if not (self._is_service and is_first):
            raise KeyboardInterrupt
