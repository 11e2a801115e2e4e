"""Freezes a broker, as with SIGSTOP: connections stay open, but requests are not answered.

Data that reaches the broker's sockets waits in the kernel's buffers, and timers due during the
pause fire late. Work in other threads, such as a sync, may finish during the pause.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from barnabas.client.loop_thread import LoopThread

if TYPE_CHECKING:
    from barnabas.testing.embedded.child_process import ChildProcess

_log = logging.getLogger(__name__)

_LONGEST_S: Final = 600.0
_BEGINS_WITHIN_S: Final = 10.0


class Pause(ABC):
    """Represents a pause, which lasts from construction until `resume`."""

    @abstractmethod
    def resume(self) -> None:
        """End the pause."""


class ThreadPause(Pause):
    """Blocks the thread of a loop for at most ten minutes. Raises TimeoutError if the thread is too
    busy.
    """

    def __init__(self, thread: LoopThread) -> None:
        self._stands = threading.Event()
        self._ends = threading.Event()
        # A callback that does not return blocks the loop, and with it the whole broker.
        thread.call_soon(self._block)
        # The loop has not run the callback yet; let it return immediately.
        if not self._stands.wait(_BEGINS_WITHIN_S):
            self._ends.set()
            raise TimeoutError(f"the broker could not be paused within {_BEGINS_WITHIN_S:g} s")

    def resume(self) -> None:
        self._ends.set()

    def _block(self) -> None:
        """Block the current loop."""
        self._stands.set()
        if not self._ends.wait(_LONGEST_S):
            _log.warning(
                "a broker that was paused %g s ago has not been resumed; resuming it", _LONGEST_S
            )


class ProcessPause(Pause):
    """Stops a broker's process."""

    def __init__(self, process: ChildProcess) -> None:
        self._process = process
        process.suspend()

    def resume(self) -> None:
        self._process.go_on()


class Paused:
    """The result of `pause`. At the end of its `with` block, the broker is resumed."""

    def __init__(self, resume: Callable[[], None]) -> None:
        self._resume = resume

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resume()
