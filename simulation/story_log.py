"""The real shells' log lines in a run: part of its story; one that reports a bug ends it."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulation.world import World


class StoryLog(logging.Handler):
    """Takes the place of all other handlers while it is entered.

    An error that is logged with a traceback is one that the shell has caught and did not expect.
    """

    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self._world = world
        self._logger = logging.getLogger("barnabas")
        self._before: tuple[int, bool] = (logging.NOTSET, True)

    def __enter__(self) -> None:
        self._before = (self._logger.level, self._logger.propagate)
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)
        self._logger.propagate = False

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
        loop = asyncio._get_running_loop()
        name = "the world" if loop is None else str(loop)
        self._world.tell("{}: {}", name, record.getMessage())
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._world.fail(error)
