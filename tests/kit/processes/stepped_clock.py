"""`barnabas` with a wall clock that a test sets, while its monotonic clock goes on as it does.

As a program: `python stepped_clock.py FILE barnabas server start ...`, where FILE says by how many
seconds the wall clock is ahead; it is read again each time that the clock is.
"""

from __future__ import annotations

import sys
from pathlib import Path

from barnabas.cli.main import main
from barnabas.clock import SystemClock
from tests.kit.processes.broker_process import BrokerProcess


class SteppedClock:
    """The wall clock of one broker process, from its next start on."""

    def __init__(self, broker: BrokerProcess, directory: Path) -> None:
        self._file = directory / "wall-clock"
        self.step(0)
        checkout = str(Path(__file__).parents[3])
        broker.prefix = (sys.executable, "-c", _PROGRAM, checkout, str(self._file))

    def step(self, ahead_s: int) -> None:
        """Show so many seconds more than the machine's clock."""
        written = self._file.with_suffix(".new")
        written.write_text(str(ahead_s))
        written.replace(self._file)  # at once: a broker may read it now


_PROGRAM = """\
import sys
sys.path.insert(0, sys.argv[1])
from tests.kit.processes.stepped_clock import run
sys.exit(run(*sys.argv[2:]))
"""


def run(file: str, _command: str, *words: str) -> int:
    """The command `barnabas` with these words, in this process."""
    path, wall_ms = Path(file), SystemClock.wall_ms

    def stepped_ms(clock: SystemClock) -> int:
        return wall_ms(clock) + 1000 * int(path.read_text())

    SystemClock.wall_ms = stepped_ms  # type: ignore[method-assign, assignment]
    return main(words)
