"""A log handler that receives everything logged during a run, and passes nothing on."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Self


class ExclusiveHandler(logging.Handler):
    """Replaces all other handlers of Barnabas while it is entered."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._logger = logging.getLogger("barnabas")
        self._before: tuple[int, bool] = (logging.NOTSET, True)

    def __enter__(self) -> Self:
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
