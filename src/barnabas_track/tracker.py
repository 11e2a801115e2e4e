"""Sends events from a server to `barnabas track serve`, in the background.

    track ─▶ queue ─▶ thread ─▶ POST /v1/events, with the same ids until the answer is 200

An event is discarded only if the server can never accept it. Events are kept only in memory, so
call `flush` or `close` before the program ends.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from types import TracebackType
from typing import Any, Final, NamedTuple

from barnabas._version import __version__
from barnabas.errors import BarnabasError
from barnabas_track.event_batch import (
    MOST_BODY_BYTES,
    MOST_EVENT_BYTES,
    MOST_EVENTS,
    encode,
    why_invalid,
)

_REFUSALS: Final = (400, 413, 415)
_FIRST_WAIT_S: Final = 0.25
_MOST_WAIT_S: Final = 30.0
# This must be longer than the server waits for the brokers.
_ANSWER_S: Final = 20.0
_HEADERS: Final = {
    "Content-Type": "application/json",
    # The server would take the default user agent for a robot's.
    "User-Agent": f"Barnabas-Tracker/{__version__}",
}
_FIELDS: Final = ("url", "referrer", "session", "campaign", "screen", "language")
_ENVELOPE: Final = b'{"events":[%s]}'

_log = logging.getLogger(__name__)


class InvalidEvent(BarnabasError, ValueError):
    """Raised if the server would reject the event. The message names the field."""


class TrackerFull(BarnabasError):
    """Raised if the queue is full. The message gives the reason why the server did not accept the
    last batch.
    """


class TrackerClosed(BarnabasError):
    """Raised if an event is tracked after `close`."""


class NotSent(BarnabasError, TimeoutError):
    """Raised if events are still in the queue when the timeout expires."""


class _Refused(Exception):
    """Raised if the server can never accept the batch."""


class _Queued(NamedTuple):
    id: str
    text: bytes


class Tracker:
    """Queues events, and sends them in batches to the server at `url`, such as
    `http://localhost:8081`.

    A thread sends the events in the background, so `track` never waits. If the server cannot be
    reached or answers that the events are not stored yet, the thread tries again, with the same
    ids, until it succeeds. Meanwhile, at most `most_events` events are kept in memory. All methods
    can be called from any thread.
    """

    def __init__(self, url: str, *, most_events: int = 10_000, linger_s: float = 0.2) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url!r}: not an address that begins with http:// or https://")
        if most_events < 1:
            raise ValueError(f"most_events={most_events}: must be at least 1")
        self._address = f"{url.rstrip('/')}/v1/events"
        self._most_events = most_events
        self._linger_s = linger_s
        self._is_closed = False
        self._forget()

    def __enter__(self) -> Tracker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def trouble(self) -> str:
        """The reason why the last batch was not accepted, or an empty string."""
        return self._trouble

    def track(
        self,
        name: str,
        /,
        *,
        visitor: str | None = None,
        time_ms: int | None = None,
        **properties: Any,
    ) -> str:
        """Queue an event, and return its id.

        `time_ms` is the event's time, by default now. `url`, `referrer`, `session`, `campaign`,
        `screen` and `language` are fields of the event; all other keyword arguments are its
        properties. Raises InvalidEvent, TrackerFull or TrackerClosed.
        """
        now_ms = time.time_ns() // 1_000_000
        event: dict[str, Any] = {
            "id": secrets.token_urlsafe(16),
            "time": now_ms if time_ms is None else time_ms,
            "name": name,
        }
        if visitor is not None:
            event["visitor"] = visitor
        event |= {each: properties.pop(each) for each in _FIELDS if each in properties}
        if properties:
            event["properties"] = properties
        self._add(_Queued(event["id"], _checked(event, now_ms)))
        return str(event["id"])

    def flush(self, timeout_s: float = 30.0) -> None:
        """Wait until all events tracked so far have been sent. Raises NotSent."""
        self._notice_fork()
        with self._changed:
            until = self._added
            self._is_urgent = True
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._removed >= until, timeout_s):
                raise NotSent(
                    f"{until - self._removed} events are not sent after {timeout_s:g} s:"
                    f" {self._trouble or 'the server has not answered yet'}"
                )

    def close(self, timeout_s: float = 30.0) -> None:
        """Send the events in the queue, and stop the thread. Raises NotSent if some events could
        not be sent in time; these events are lost.
        """
        with self._changed:
            self._is_closed = True
        try:
            self.flush(timeout_s)
        finally:
            with self._changed:
                self._is_stopping = True
                self._changed.notify_all()

    def _forget(self) -> None:
        """Start with an empty queue and without a thread."""
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._queue: deque[_Queued] = deque()
        self._added = 0
        self._removed = 0
        self._trouble = ""
        self._is_urgent = False
        self._is_stopping = False
        self._thread: threading.Thread | None = None

    def _notice_fork(self) -> None:
        """After a fork, forget the parent's events, which are sent by the parent's thread. The
        child does not have this thread.
        """
        if self._process != os.getpid():
            self._forget()

    def _add(self, event: _Queued) -> None:
        self._notice_fork()
        with self._changed:
            if self._is_closed:
                raise TrackerClosed("the tracker is closed")
            if len(self._queue) >= self._most_events:
                why = self._trouble or "they are tracked faster than the server accepts them"
                raise TrackerFull(f"{len(self._queue)} events are in the queue: {why}")
            self._queue.append(event)
            self._added += 1
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tracker", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        wait_s = _FIRST_WAIT_S
        while (batch := self._next_batch()) is not None:
            try:
                self._post(batch)
            except _Refused as error:
                _log.error("%d events are lost: %s", len(batch), error)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._wait(wait_s, _reason(error))
                wait_s = min(_MOST_WAIT_S, 2 * wait_s)
                continue
            wait_s = _FIRST_WAIT_S
            with self._changed:
                self._trouble = ""
                self._removed += len(batch)
                for _ in batch:
                    self._queue.popleft()
                self._is_urgent = self._is_urgent and bool(self._queue)
                self._changed.notify_all()

    def _wait(self, wait_s: float, trouble: str) -> None:
        """Wait before the next attempt. Jitter keeps trackers from all retrying at the same
        time.
        """
        with self._changed:
            self._trouble = trouble
            jitter = 0.5 + secrets.randbelow(1_000) / 2_000
            self._changed.wait_for(lambda: self._is_stopping, wait_s * jitter)

    def _next_batch(self) -> list[_Queued] | None:
        """Return the oldest events, which stay in the queue, or None to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_stopping)
            if self._is_stopping:
                return None
            self._changed.wait_for(self._is_due, self._linger_s)
            batch: list[_Queued] = []
            room = MOST_BODY_BYTES - len(_ENVELOPE)
            for event in self._queue:
                room -= len(event.text) + 1
                if room < 0 or len(batch) == MOST_EVENTS:
                    break
                batch.append(event)
            return batch

    def _is_due(self) -> bool:
        return self._is_urgent or self._is_stopping or len(self._queue) >= MOST_EVENTS

    def _post(self, batch: list[_Queued]) -> None:
        """Send a batch. Raises _Refused if it must not be sent again, and any other error if it
        must be sent again.
        """
        body = _ENVELOPE % b",".join(each.text for each in batch)
        request = urllib.request.Request(self._address, body, _HEADERS)
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_S) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            with error:
                if error.code in _REFUSALS:
                    raise _Refused(_reason(error)) from None
                raise
        if not isinstance(answer, dict) or "accepted" not in answer:
            raise ValueError("something other than `barnabas track serve` has answered")
        if answer.get("rejected"):
            _log.error("the server rejected %d events: %s", answer["rejected"], answer["reasons"])


def _checked(event: dict[str, Any], now_ms: int) -> bytes:
    """Check an event, and return it as JSON. Raises InvalidEvent."""
    if (reason := why_invalid(event, now_ms)) is not None:
        raise InvalidEvent(reason)
    try:
        text = encode(event)
    except (TypeError, ValueError) as error:
        raise InvalidEvent(f"properties: {error}") from None
    if len(text) > MOST_EVENT_BYTES:
        raise InvalidEvent(f"an event may have at most {MOST_EVENT_BYTES:,} bytes")
    return text


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answered {error.code} {error.reason}"
    return str(error) or type(error).__name__
