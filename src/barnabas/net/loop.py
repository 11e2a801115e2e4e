"""Creates the event loop: uvloop's if it is installed, otherwise asyncio's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop. uvloop saves about a tenth of the time per request."""
    factory: Callable[[], asyncio.AbstractEventLoop]
    try:
        from uvloop import new_event_loop as factory
    except ImportError:
        factory = asyncio.new_event_loop
    return factory()
