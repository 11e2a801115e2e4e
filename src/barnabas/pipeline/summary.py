"""What a run tells the person at the terminal: its steps as they end, and the account at the end.

Standard output; errors are `__main__`'s business.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from barnabas.pipeline.accounts import Accounts

_LABEL_WIDTH = 11


class Steps:
    """Prints one line per step, with its seconds where it took any."""

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def tell(self, label: str, text: str) -> None:
        self._output.write(f"{label:<{_LABEL_WIDTH}} {text}\n")
        self._output.flush()

    @contextmanager
    def timed(self, label: str) -> Iterator[list[str]]:
        """Put what is to be told into the list that this gives."""
        begin_s = time.monotonic()
        told: list[str] = []
        yield told
        self.tell(label, f"{' '.join(told)}  ({time.monotonic() - begin_s:.1f} s)")


def account(accounts: Accounts) -> str:
    """The one line that has to add up."""
    sign = "=" if accounts.balance else "≠"
    return (
        f"read {accounts.read:,} {sign} valid {accounts.valid:,}"
        f" + dead letters {accounts.dead_letters:,} + sent twice {accounts.sent_twice:,}"
    )
