"""Adds the real shells' log lines to the story of a run; a line that reports a bug ends the run."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from simulation.exclusive_handler import ExclusiveHandler

if TYPE_CHECKING:
    from simulation.world import World


class StoryLog(ExclusiveHandler):
    """Writes log lines into the story of a world.

    If an error is logged with a traceback, the shell has caught it but did not expect it.
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        loop = asyncio._get_running_loop()
        name = "the world" if loop is None else str(loop)
        self._world.tell("{}: {}", name, record.getMessage())
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._world.fail(error)
