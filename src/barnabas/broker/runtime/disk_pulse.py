"""Detects when a log directory's disk hangs, so that a write neither completes nor fails.

If a write fails, the directory goes offline (ST-10). If the disk hangs, the directory stays online.
The call blocks in the kernel, perhaps together with the event loop, while the client of the
metadata store keeps the session alive from its own thread. No other broker can then become the
leader. For this reason, a small file is periodically written and synced in every directory. If that
takes longer than `log.dir.failure.timeout.ms`, the broker closes its session.

    writer     a thread that can block on the disk
    watcher    a thread that never accesses the disk; it counts its own ticks during a write,
               so that a paused machine is not mistaken for a hanging disk
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from barnabas.storage.files import Files

FILE_NAME = ".barnabas_pulse"

_TICKS = 4  # ticks during the longest time that a write may take
_SHORTEST_TICK_MS = 10


class DiskPulse:
    """Writes small files between calls of `start` and `stop`, and checks how long each
    write takes.
    """

    def __init__(
        self,
        files: Files,
        directories: Callable[[], Sequence[Path]],
        timeout_ms: int,
        on_hang: Callable[[Path], None],
        tick_ms: int = 0,
    ) -> None:
        """`directories` returns the log directories that are online.

        `on_hang` is called once, in the watcher's thread, with the directory whose disk hangs.
        `tick_ms` is the time between two writes, which defaults to a quarter of the longest time
        that a write may take.
        """
        self._files = files
        self._directories = directories
        self._timeout_ms = timeout_ms
        self._tick_ms = tick_ms or max(timeout_ms // _TICKS, _SHORTEST_TICK_MS)
        self._on_hang = on_hang
        self._stopped = threading.Event()
        self._writes = 0  # the writes started so far; each thread sets only its own fields
        self._ended = 0
        self._path = Path()
        self._seen = self._ticks = 0

    def start(self) -> None:
        """Start the two threads."""
        for name, run in (("barnabas-pulse", self._beat), ("barnabas-watch", self._watch)):
            threading.Thread(target=run, name=name, daemon=True).start()

    def stop(self) -> None:
        """Stop writing. Does not wait for a write that is in progress."""
        self._stopped.set()

    def tick(self) -> bool:
        """Check the current write. If it takes too long, call `on_hang` once."""
        writes = self._writes
        # There is no write in progress, or it is not the same write as at the last tick.
        if writes == self._ended or writes != self._seen:
            self._seen, self._ticks = writes, 0
            return False
        self._ticks += 1
        if self._ticks * self._tick_ms < self._timeout_ms:
            return False
        self._on_hang(self._path)
        return True

    def _beat(self) -> None:
        while not self._stopped.wait(self._tick_ms / 1000):
            for path in self._directories():
                # `stop` may have been called while a previous directory was slow.
                if self._stopped.is_set():
                    return
                self._path = path
                self._writes += 1
                with suppress(OSError):  # errors are not hangs and are handled by other code
                    self._files.write(path / FILE_NAME, b"%d\n" % self._writes, sync=True)
                self._ended = self._writes

    def _watch(self) -> None:
        while not self._stopped.wait(self._tick_ms / 1000):
            if self.tick():
                return
