"""Writes to stderr how many records a program lost by not calling `close`."""

from __future__ import annotations

import sys

from barnabas.counted import counted


def say_lost(count: int, client: str) -> None:
    """Write a line even if logging is off: the records leave no other trace."""
    if count and sys.stderr is not None:
        records = f"{counted(count, 'record')} {'was' if count == 1 else 'were'}"
        sys.stderr.write(
            f"barnabas: {records} not acknowledged when the program dropped {client}, and may be "
            "lost: call flush() and close(), or use a with block\n"
        )
