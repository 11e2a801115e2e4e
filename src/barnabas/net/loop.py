"""Creates the event loop. It is uvloop's loop if uvloop is installed, otherwise asyncio's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a new event loop. With uvloop, a request takes about a tenth less time."""
    factory: Callable[[], asyncio.AbstractEventLoop]
    try:
        from uvloop import new_event_loop as factory
    except ImportError:
        factory = asyncio.new_event_loop
    return factory()
