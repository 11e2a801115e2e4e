"""A run's output on the terminal: its steps as they end, and the account at the end.

On standard output; `__main__` reports errors.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from barnabas.pipeline.accounts import Accounts

_LABEL_WIDTH = 11


class Steps:
    """Prints one line per step, with its duration."""

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def show(self, label: str, text: str) -> None:
        self._output.write(f"{label:<{_LABEL_WIDTH}} {text}\n")
        self._output.flush()

    @contextmanager
    def timed(self, label: str) -> Iterator[list[str]]:
        """Time a step; append its texts to the list that this yields."""
        begin_s = time.monotonic()
        results: list[str] = []
        yield results
        self.show(label, f"{' '.join(results)}  ({time.monotonic() - begin_s:.1f} s)")


def account(accounts: Accounts) -> str:
    """The line of counts that has to add up."""
    sign = "=" if accounts.balance else "≠"
    return (
        f"read {accounts.read:,} {sign} valid {accounts.valid:,}"
        f" + dead letters {accounts.dead_letters:,} + sent twice {accounts.sent_twice:,}"
    )
