"""Limits sign-ins and sessions: the rate of password attempts, the number of sessions and their
lifetime. Pure.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable
from math import ceil
from typing import Final, Generic, TypeVar

from barnabas.console.problem import WebProblem

WINDOW_S: Final = 60.0
MOST_ATTEMPTS: Final = 5
MOST_OF_ADDRESS: Final = 20
_MOST_KEPT: Final = 2_000
MOST_SESSIONS: Final = 32
MOST_OF_USER: Final = 4
IDLE_S: Final = 30 * 60.0
LONGEST_S: Final = 12 * 3600.0

T = TypeVar("T")


class Attempts:
    """Counts the failed attempts of the last minute."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._failures: dict[tuple[str, str], deque[float]] = {}

    def begin(self, address: str, user: str) -> None:
        """Count an attempt before its outcome is known, so that concurrent attempts are also
        limited.

        Raises a `WebProblem` if there were too many attempts.
        """
        now_s = self._now_s()
        for key, most in (((address, user), MOST_ATTEMPTS), ((address, ""), MOST_OF_ADDRESS)):
            times = self._failures.get(key, deque())
            while times and now_s - times[0] >= WINDOW_S:
                times.popleft()
            if len(times) >= most:
                seconds = ceil(WINDOW_S - (now_s - times[0]))
                raise WebProblem(
                    429, f"there were too many attempts to sign in; try again in {seconds} s"
                )
        for key in ((address, user), (address, "")):
            self._failures.setdefault(key, deque()).append(now_s)
        while len(self._failures) > _MOST_KEPT:
            del self._failures[next(iter(self._failures))]

    def forgive(self, address: str, user: str) -> None:
        """Remove the latest attempt from the count, because the password was not wrong."""
        for key in ((address, user), (address, "")):
            times = self._failures.get(key)
            if times:
                times.pop()
            if not times:
                self._failures.pop(key, None)


class _Entry(Generic[T]):
    def __init__(self, user: str, value: T, now_s: float) -> None:
        self.user = user
        self.value = value
        self.began_s = self.asked_s = now_s


class SessionBook(Generic[T]):
    """Holds the value of each session under the token in the browser's cookie."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._entries: dict[str, _Entry[T]] = {}

    def add(self, user: str, value: T) -> tuple[str, list[T]]:
        """Create a session, and return its token and the older sessions of this user that it
        replaces.
        """
        own = [token for token, entry in self._entries.items() if entry.user == user]
        replaced = own[: max(0, len(own) - MOST_OF_USER + 1)]
        removed = [self._entries.pop(token).value for token in replaced]
        token = secrets.token_urlsafe(32)
        self._entries[token] = _Entry(user, value, self._now_s())
        return token, removed

    def find(self, token: str) -> T | None:
        """Return a session that has not expired, and record that its browser sent a request."""
        entry = self._entries.get(token)
        now_s = self._now_s()
        if entry is None or _is_over(entry, now_s):
            return None
        entry.asked_s = now_s
        return entry.value

    def remove(self, token: str) -> T | None:
        """Remove a session and return its value, or None if there is no such session."""
        entry = self._entries.pop(token, None)
        return None if entry is None else entry.value

    def remove_expired(self) -> list[T]:
        """Remove the sessions that have expired, and return their values."""
        now_s = self._now_s()
        over = [token for token, entry in self._entries.items() if _is_over(entry, now_s)]
        return [self._entries.pop(token).value for token in over]

    def values(self) -> list[T]:
        """Return the values of all sessions."""
        return [entry.value for entry in self._entries.values()]

    def remove_if(self, is_over: Callable[[T], bool]) -> list[T]:
        """Remove the sessions that have this value, and return the removed values."""
        over = [token for token, entry in self._entries.items() if is_over(entry.value)]
        return [self._entries.pop(token).value for token in over]


def _is_over(entry: _Entry[T], now_s: float) -> bool:
    return now_s - entry.asked_s >= IDLE_S or now_s - entry.began_s >= LONGEST_S
