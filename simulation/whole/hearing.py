"""Records what brokers and clients log in a run: as lines of its story, or as findings if
unexpected."""

from __future__ import annotations

import logging

from simulation.exclusive_handler import ExclusiveHandler
from simulation.whole.history import History
from simulation.whole.lives import CURRENT


class Hearing(ExclusiveHandler):
    """Writes log lines into the history of a run.

    `truncations` counts the logs that were cut; `alarms` are errors with a traceback, in words.
    """

    def __init__(self, history: History) -> None:
        super().__init__()
        self._history = history
        self.truncations = 0
        self.alarms: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        life = CURRENT.get()
        name = "the world" if life is None else life.name
        text = record.getMessage()
        self.truncations += text.startswith("Truncating ")
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            text = f"{text}: {error!r}"
            if not isinstance(error, OSError):  # a disk error that the run has caused
                self.alarms.append(f"{name}: {text}")
        self._history.tell("{}: {}", name, text)
