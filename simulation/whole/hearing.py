"""What brokers and clients log in a run: lines of its story, and findings if it is unexpected."""

from __future__ import annotations

import logging
from collections import Counter
from types import TracebackType

from simulation.whole.history import History
from simulation.whole.lives import CURRENT

_BARNABAS = "barnabas"


class Hearing(logging.Handler):
    """Takes the place of all other handlers while it is entered. `said` counts the messages by
    their formats; `alarms` are errors that came with a traceback, in words."""

    def __init__(self, history: History) -> None:
        super().__init__(logging.INFO)
        self._history = history
        self._logger = logging.getLogger(_BARNABAS)
        self._before: tuple[int, bool] = (logging.NOTSET, True)
        self.said: Counter[str] = Counter()
        self.alarms: list[str] = []

    def __enter__(self) -> Hearing:
        self._before = (self._logger.level, self._logger.propagate)
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)
        self._logger.propagate = False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._before[0])
        self._logger.propagate = self._before[1]

    def emit(self, record: logging.LogRecord) -> None:
        life = CURRENT.get()
        name = "the world" if life is None else life.name
        self.said[str(record.msg)] += 1
        text = record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            text = f"{text}: {error!r}"
            if not isinstance(error, OSError):  # a disk's, which the run has broken
                self.alarms.append(f"{name}: {text}")
        self._history.tell("{}: {}", name, text)
