"""Defines a rule: which requests it matches, what happens to them, and how often.

    armed -> passes the first `after` matching requests -> is applied to `count` of them -> spent

Only matching requests change a rule's state, and each counts once, as passed or as a hit. A spent
or removed rule keeps its counts. They change under a lock, on the loops that serve requests; tests
may read them in any thread. A hit is counted before the client sees the effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Condition
from typing import Any, NamedTuple

from barnabas.counted import counted
from barnabas.errors import BarnabasError
from barnabas.testing.faults.selection import Narrowed
from barnabas.testing.faults.temporary_fault import Temporary


class RuleNotHit(BarnabasError, AssertionError):
    """Raised if a rule was not hit often enough in time. The message states the number of hits."""


RuleNotHit.__module__ = "barnabas.testing"  # the module under which it is documented


def __tracebackhide__(failure: Any) -> bool:
    """Return True to make pytest hide the frames of this file."""
    return failure is not None and isinstance(failure.value, RuleNotHit)


class Match(NamedTuple):
    """Selects the requests that a rule matches. A field that is None matches any request."""

    api: str
    narrowed: Narrowed = Narrowed()
    client_id: str | None = None
    broker_id: int | None = None
    listener: str | None = None
    replicas: bool = False
    """Whether to match followers' replication requests, too (Fetch and OffsetForLeaderEpoch)."""


class Tally(NamedTuple):
    """Counts the requests to which a rule was applied, and the requests that it let pass first."""

    hits: int = 0
    passed: int = 0


class Action(NamedTuple):
    """The effect on a matching request."""

    error: str | None = None
    delay_ms: int = 0
    cut: bool = False
    drop: bool = False


class Rule(Temporary):
    """A rule, which applies until `remove`, the end of its `with` block, or the `count`th hit.

    A removed rule keeps its counts. `faults.add` creates it. All methods may be called in any
    thread.
    """

    def __init__(
        self,
        rule_id: int,
        match: Match,
        action: Action,
        limits: tuple[int, int | None],
        remove: Callable[[Rule], None],
    ) -> None:
        """`limits`: how many matching requests pass before the first hit, and the maximum number of
        hits (None: no limit).
        """
        self.rule_id = rule_id
        self.match = match
        self.action = action
        self.after, self.count = limits
        super().__init__(lambda: remove(self))
        self._changed = Condition()
        self._tally = Tally()

    @property
    def hits(self) -> int:
        """The number of requests to which the rule was applied."""
        return self._tally.hits

    @property
    def tally(self) -> Tally:
        """The counts as known in this process."""
        return self._tally

    def take_over(self, tally: Tally) -> None:
        """Replace the counts with those of another process."""
        with self._changed:
            self._tally = tally

    @property
    def is_spent(self) -> bool:
        """Return whether the rule has been applied `count` times and therefore no
        longer applies.
        """
        return self.count is not None and self.hits >= self.count

    def take(self) -> bool:
        """Count a matching request, and return whether to apply the rule to it."""
        with self._changed:
            if self.is_spent:
                return False
            hits, passed = self._tally
            # Let the first `after` requests pass; they are counted separately.
            if passed < self.after:
                self._tally = Tally(hits, passed + 1)
                return False
            self._tally = Tally(hits + 1, passed)
            self._changed.notify_all()
            return True

    def wait(self, hits: int = 1, timeout_s: float = 10.0) -> None:
        """Wait until the rule has been hit `hits` times. Raises RuleNotHit after `timeout_s`.

        This blocks the calling thread, but not the broker. Do not call it in the thread of an
        asyncio loop whose clients must send the requests.
        """
        # The rule can never be hit that often, so the wait would always time out.
        if self.count is not None and hits > self.count:
            raise RuleNotHit(f"hits={hits} can never be reached: {self} has count={self.count}")
        deadline_s = time.monotonic() + timeout_s
        while self.hits < hits:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                times = counted(self._tally.hits, "time")
                passed = counted(self._tally.passed, "matching request")
                raise RuleNotHit(
                    f"{self} was hit {times} in {timeout_s:g} s, not {hits}; {passed} passed "
                    f"before (after={self.after})"
                )
            self._wait(hits, left_s)

    def _wait(self, hits: int, left_s: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._tally.hits >= hits, left_s)

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self.arguments().items()]
        return f"Rule({self.rule_id}: {', '.join(shown)}, hits={self._tally.hits})"

    def arguments(self) -> dict[str, str | int | bool]:
        """Return the arguments passed to `add`, without defaults."""
        match, action = self.match, self.action
        given = {
            "api": match.api,
            "topic": match.narrowed.topic,
            "partition": match.narrowed.partition,
            "client_id": match.client_id,
            "broker": match.broker_id,
            "listener": match.listener,
            "replicas": match.replicas or None,
            "error": action.error,
            "delay_ms": action.delay_ms or None,
            "cut": action.cut or None,
            "drop": action.drop or None,
            "count": self.count,
            "after": self.after or None,
        }
        return {name: value for name, value in given.items() if value is not None}
