"""Waiting for what another thread, process or task brings about."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable

from tests.kit.raw_client import PATIENCE_S

_PAUSE_S = 0.01


def wait_until(condition: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Return once it holds. The time bounds a hang, and says nothing of speed."""
    ends_at_s = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < ends_at_s, _not_so(condition, within_s)
        time.sleep(_PAUSE_S)


async def until(condition: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """As `wait_until`, while the others of this loop go on; the time is the loop's."""
    now_s = asyncio.get_running_loop().time
    ends_at_s = now_s() + within_s
    while not condition():
        assert now_s() < ends_at_s, _not_so(condition, within_s)
        await asyncio.sleep(_PAUSE_S)


def _not_so(condition: Callable[[], object], within_s: float) -> str:
    """Which one it was: the traceback ends in this file, and one test waits for many things."""
    try:
        text = inspect.getsource(condition)
    except (OSError, TypeError):  # a partial, or what has no source
        text = repr(condition)
    return f"not so after {within_s:g} s: {' '.join(text.split())}"
