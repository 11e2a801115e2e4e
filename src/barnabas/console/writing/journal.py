"""Logs each action in the console in one line."""

from __future__ import annotations

import sys
from typing import Final

from barnabas.cli.groups.instants import instant_text
from barnabas.clock import SystemClock
from barnabas.printable import printable_within

_MOST_CHARACTERS: Final = 500


def journal(who: str, what: str, outcome: str) -> None:
    """Write when, who, what and how it ended to standard error."""
    now = instant_text(SystemClock().wall_ms())
    line = printable_within(f"{who} {what}: {outcome}", _MOST_CHARACTERS)
    sys.stderr.write(f"{now} barnabas console: {line}\n")
    sys.stderr.flush()
