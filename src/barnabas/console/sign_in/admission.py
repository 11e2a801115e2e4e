"""Limits the rate of attempts to sign in, the number of sessions, and their lifetime. Pure."""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable
from math import ceil
from typing import Final, Generic, NamedTuple, TypeVar

from barnabas.console.problem import WebProblem
from barnabas.counted import counted

WINDOW_S: Final = 60.0
MOST_ATTEMPTS: Final = 5
MOST_OF_ADDRESS: Final = 20
_MOST_KEPT: Final = 2_000
MOST_SESSIONS: Final = 32
MOST_OF_USER: Final = 4
_MOST_ENDED: Final = 200

REFUSED: Final = "because the cluster no longer admits its user"
REPLACED: Final = f"because its user has more than {MOST_OF_USER} sessions"
_UNKNOWN: Final = "or the console has restarted"
"""Why a session ended, for a sentence that begins with "Your session has ended"."""

T = TypeVar("T")


class Lifetime(NamedTuple):
    """Specifies how long a session may last, in seconds."""

    idle_s: float = 30 * 60.0
    """The time without a request after which a session ends."""
    longest_s: float = 12 * 3600.0
    """The time after which a session ends in any case."""


USUAL: Final = Lifetime()


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

    def __init__(
        self, lifetime: Lifetime = USUAL, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._lifetime = lifetime
        self._now_s = now_s
        self._entries: dict[str, _Entry[T]] = {}
        self._ended: dict[str, str] = {}  # why, by token; the oldest are forgotten

    def add(self, user: str, value: T) -> tuple[str, list[T]]:
        """Create a session, and return its token and the older sessions of this user that it
        replaces.
        """
        own = [token for token, entry in self._entries.items() if entry.user == user]
        replaced = own[: max(0, len(own) - MOST_OF_USER + 1)]
        removed = [self._end(token, REPLACED) for token in replaced]
        token = secrets.token_urlsafe(32)
        self._entries[token] = _Entry(user, value, self._now_s())
        return token, removed

    def find(self, token: str) -> T | None:
        """Return a session that has not expired, and record that its browser sent a request."""
        entry = self._entries.get(token)
        now_s = self._now_s()
        if entry is None or self._expiry(entry, now_s):
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
        reasons = {token: self._expiry(each, now_s) for token, each in self._entries.items()}
        return [self._end(token, reason) for token, reason in reasons.items() if reason]

    def values(self) -> list[T]:
        """Return the values of all sessions."""
        return [entry.value for entry in self._entries.values()]

    def remove_if(self, is_over: Callable[[T], bool]) -> list[T]:
        """Remove the sessions that the cluster refuses, and return their values."""
        over = [token for token, entry in self._entries.items() if is_over(entry.value)]
        return [self._end(token, REFUSED) for token in over]

    def why_ended(self, token: str) -> str:
        """Return why the session with this token has ended. It is called if `find` does not find
        the token.
        """
        entry = self._entries.get(token)
        if entry is None:
            return self._ended.get(token, _UNKNOWN)
        return self._expiry(entry, self._now_s()) or REFUSED

    def _end(self, token: str, reason: str) -> T:
        self._ended[token] = reason
        while len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        return self._entries.pop(token).value

    def _expiry(self, entry: _Entry[T], now_s: float) -> str:
        """Return why a session has expired, or "" if it has not."""
        if now_s - entry.began_s >= self._lifetime.longest_s:
            return f"after {_duration(self._lifetime.longest_s)}"
        if now_s - entry.asked_s >= self._lifetime.idle_s:
            return f"after {_duration(self._lifetime.idle_s)} without a request"
        return ""


def _duration(seconds: float) -> str:
    """Return a duration in words, such as "30 minutes"."""
    for size, name in ((3600, "hour"), (60, "minute")):
        if seconds >= size and not seconds % size:
            return counted(round(seconds / size), name)
    return counted(round(seconds), "second")
