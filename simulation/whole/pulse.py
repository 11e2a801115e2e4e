"""The broker's pulse of its disks, with virtual time instead of its two threads.

The threads belong to the broker's process, not to its loop: they go on while a turn waits for the
disk, and stop while the process is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from barnabas.broker.runtime.disk_pulse import DiskPulse
from simulation.whole.files import SimFiles
from simulation.whole.lives import Life
from simulation.whole.loop import VirtualLoop


class SimPulse(DiskPulse):
    """Asks the disk whether a write would end, instead of writing."""

    def __init__(
        self,
        loop: VirtualLoop,
        life: Life,
        files: SimFiles,
        directories: Callable[[], Sequence[Path]],
        timeout_ms: int,
        on_hang: Callable[[Path], None],
    ) -> None:
        super().__init__(files, directories, timeout_ms, on_hang)
        self._loop = loop
        self._life = life
        self._disk = files

    def start(self) -> None:
        self._loop.world_at_us(self._loop.now_us + 1000 * self._tick_ms, self._turn)

    def _turn(self) -> None:
        if self._life.is_over or self._stopped.is_set():
            return
        if not self._life.is_paused:
            self._write()
            if self._life.run(self.tick):
                return
        self.start()

    def _write(self) -> None:
        """End the write under way, unless it still hangs, and begin the next ones."""
        if self._writes != self._ended and self._hangs(self._path):
            return
        self._ended = self._writes
        for path in self._directories():
            self._path = path
            self._writes += 1
            if self._hangs(path):
                return
            self._ended = self._writes

    def _hangs(self, path: Path) -> bool:
        return self._disk.hangs_until_us(path) > self._loop.now_us
