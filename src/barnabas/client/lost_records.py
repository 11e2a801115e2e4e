"""Writes to stderr how many records a program lost because it did not call `close`."""

from __future__ import annotations

import sys

from barnabas.counted import counted


def say_lost(count: int, client: str) -> None:
    """Write a line to stderr even if logging is off, because the records leave no other trace."""
    if count and sys.stderr is not None:
        records = f"{counted(count, 'record')} {'was' if count == 1 else 'were'}"
        sys.stderr.write(
            f"barnabas: {records} not acknowledged when the program dropped {client}, and may be "
            "lost: call flush() and close(), or use a with block\n"
        )
