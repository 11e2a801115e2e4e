"""Knows whether the records of a journal reach the brokers, for `/readyz`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from barnabas.errors import BarnabasError, KafkaError, UnknownTopicOrPartition

STUCK_S: Final = 300.0
"""How long nothing may be sent while records are waiting."""


class JournalProgress:
    """The state of sending. `now_s` is a monotonic clock."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._since_s: float | None = None  # of the last progress; None if nothing is waiting
        self._refusal = ""
        self._failure = ""

    @property
    def trouble(self) -> str:
        """The reason why the records will not be sent without help, or an empty string."""
        if self._refusal:
            return f"the brokers refuse the events of the journal: {self._refusal}"
        if self._since_s is None or (waited_s := self._now_s() - self._since_s) < STUCK_S:
            return ""
        why = self._failure or "the brokers have not answered"
        return f"no event of the journal was sent within {int(waited_s)} s: {why}"

    def on_stored(self) -> None:
        """Note that records are waiting."""
        if self._since_s is None:
            self._since_s = self._now_s()

    def on_committed(self) -> None:
        """Note that the brokers have committed records or a position."""
        self._refusal = self._failure = ""
        if self._since_s is not None:
            self._since_s = self._now_s()

    def on_all_sent(self) -> None:
        """Note that no record is waiting."""
        self._since_s = None

    def on_failure(self, error: BarnabasError) -> None:
        """Note why the last transaction failed."""
        self._failure = str(error)
        # The client has already waited for the topic, in case it is new.
        is_refused = isinstance(error, KafkaError) and (
            not error.retriable or isinstance(error, UnknownTopicOrPartition)
        )
        self._refusal = self._failure if is_refused else ""
