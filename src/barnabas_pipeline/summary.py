"""Prints the steps of a run, followed by an account of the run's records.

Output goes to standard output; `__main__` reports errors. On a terminal, a long step shows its
activity and duration until its final line replaces them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from barnabas_pipeline.accounts import Accounts

_LABEL_WIDTH = 11
_TICK_S = 1.0
_ERASE_LINE = "\r\x1b[K"


class Steps:
    """Prints one line per step, with its duration."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._is_terminal = output.isatty()

    def show(self, label: str, text: str) -> None:
        self._output.write(f"{label:<{_LABEL_WIDTH}} {text}\n")
        self._output.flush()

    @contextmanager
    def step(self, label: str, doing: str) -> Iterator[list[str]]:
        """Time a step, and yield a list to which the caller appends the texts to show at its end.

        `doing`: what the step does, shown until it ends.
        """
        begin_s = time.monotonic()
        results: list[str] = []
        with self.meanwhile(label, doing):
            yield results
        self.show(label, f"{' '.join(results)}  ({time.monotonic() - begin_s:.1f} s)")

    @contextmanager
    def meanwhile(self, label: str, doing: str) -> Iterator[None]:
        """Show the current activity on a terminal until the block ends."""
        begin_s = time.monotonic()
        if not self._is_terminal:
            yield
            return
        ended = threading.Event()

        def show() -> None:
            while True:
                took_s = time.monotonic() - begin_s
                self._output.write(f"\r{label:<{_LABEL_WIDTH}} {doing} ... {took_s:.0f} s")
                self._output.flush()
                if ended.wait(_TICK_S):
                    return

        thread = threading.Thread(target=show, name="steps", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self._output.write(_ERASE_LINE)
            self._output.flush()


def account(accounts: Accounts) -> str:
    """Return a line that contains the counts and shows whether they add up."""
    sign = "=" if accounts.balance else "≠"
    return (
        f"read {accounts.read:,} {sign} valid {accounts.valid:,}"
        f" + dead letters {accounts.dead_letters:,} + sent twice {accounts.sent_twice:,}"
    )
