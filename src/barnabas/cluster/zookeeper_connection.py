"""Wraps kazoo's client and its single thread, and passes its events to the event loop.

kazoo finds a server, keeps the session alive, and always begins the next session after an expiry.
Its thread calls nothing but `_Inbox.put`. Events are handled in the loop's thread, in order: a
response precedes a later loss of the connection, and the end of a session precedes the beginning of
the next.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable
from typing import Any

from kazoo.client import KazooClient, KazooState  # type: ignore[import-untyped]
from kazoo.exceptions import (  # type: ignore[import-untyped]
    ConnectionLoss,
    WriterNotClosedException,
    ZookeeperError,
)
from kazoo.handlers.threading import (  # type: ignore[import-untyped]
    SequentialThreadingHandler,
)
from kazoo.protocol.states import EventType, KeeperState  # type: ignore[import-untyped]
from kazoo.retry import KazooRetry  # type: ignore[import-untyped]

from barnabas.cluster.store import SessionState
from barnabas.cluster.zookeeper_settings import Settings
from barnabas.config.zookeeper_keys import hosts_and_chroot
from barnabas.errors import ConfigError
from barnabas.security.tls_settings import TlsSettings

_log = logging.getLogger(__name__)

_FIRST_RETRY_S = 0.05
_LAST_RETRY_S = 1.0
_LONGEST_SILENCE_S = 5.0
_LOOK_EVERY_S = 1.0
_UNBOUNDED_S = 1e9
_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.EXPIRED,
}


class NotUnderstood(Exception):
    """Raised for a malformed response; it is unknown whether the request took effect."""


OnState = Callable[[SessionState, int], None]


class _Inbox:
    """A queue of calls for the loop; all pending calls wake it once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._is_waking = False

    def put(self, call: Callable[..., None], *arguments: Any) -> None:
        """Queue a call. Callable from any thread."""
        self._calls.append((call, arguments))
        if not self._is_waking:
            self._is_waking = True
            try:
                self._loop.call_soon_threadsafe(self._empty)
            except RuntimeError:
                _log.debug("the event loop is closed: dropping an event from ZooKeeper")

    def _empty(self) -> None:
        # set before taking the first call, so that later calls wake it again
        self._is_waking = False
        while self._calls:
            call, arguments = self._calls.popleft()
            try:
                call(*arguments)
            except Exception as error:
                context = {"message": "handling an event from ZooKeeper failed", "exception": error}
                self._loop.call_exception_handler(context)


class _Reply:
    """Receives a response in kazoo's thread, and passes it to `future`, which the loop awaits."""

    __slots__ = ("_inbox", "future")

    def __init__(self, inbox: _Inbox, future: asyncio.Future[Any]) -> None:
        self._inbox = inbox
        self.future = future

    def set(self, value: Any = None) -> None:
        self._inbox.put(self._on_answer, value)

    def set_exception(self, error: Exception) -> None:
        # This may be a struct.error in kazoo, for example; the request may have taken effect.
        if not isinstance(error, ZookeeperError):
            error = NotUnderstood(str(error))
        self._inbox.put(self._on_failure, error)

    def _on_answer(self, value: Any) -> None:
        if not self.future.done():
            self.future.set_result(value)

    def _on_failure(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threads, without the two that only call callbacks: ours are trivial."""

    def __init__(self, host_timeout_s: float, tls: TlsSettings | None) -> None:
        """Create the handler. Raises ConfigError if TLS is requested, but not possible."""
        super().__init__()
        self._host_timeout_s = host_timeout_s
        self._tls = tls
        self._context = None if tls is None else _context(tls)

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def spawn(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return super().spawn(_survive, func, *args, **kwargs)

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def select(
        self, reading: list[Any], writing: list[Any], _: list[Any], timeout: float | None = None
    ) -> Any:
        """Limit the wait for a silent server, so that it delays neither the stop nor the session.

        A starting server accepts connections and then drops them; kazoo would wait a whole session
        for the first response.
        """
        left_s = _UNBOUNDED_S if timeout is None else timeout
        # kazoo waits on two sockets if it can be woken, but on one in the middle of a request or a
        # response.
        is_held_up = len(reading) + len(writing) == 1
        if is_held_up:
            left_s = min(left_s, self._host_timeout_s)
        while True:
            ready = super().select(reading, writing, [], min(left_s, _LOOK_EVERY_S))
            left_s -= _LOOK_EVERY_S
            is_over = is_held_up and not self._running
            if any(ready) or is_over or left_s <= 0:
                return ready

    def create_connection(
        self, address: tuple[str, int], hostname: str | None = None, **_: Any
    ) -> Any:
        """Limit the wait for a host that does not answer.

        Use our TLS: kazoo's supports only PEM files.
        """
        plain = super().create_connection(address, timeout=self._host_timeout_s)
        if self._tls is None:
            return plain
        try:
            return self._fresh_context(self._tls).wrap_socket(plain, server_hostname=hostname)
        except BaseException:
            plain.close()
            raise

    def _fresh_context(self, tls: TlsSettings) -> ssl.SSLContext:
        """Create a context from the current files; if they are unusable, keep the last one."""
        assert self._context is not None
        try:
            self._context = _context(tls)
        except ConfigError as error:
            _log.error("keeping the previous certificates for connections to ZooKeeper: %s", error)
        return self._context


def _context(tls: TlsSettings) -> ssl.SSLContext:
    from barnabas.security.tls import client_context  # few clusters need it

    try:
        return client_context(tls)
    except ConfigError as error:
        raise ConfigError(f"zookeeper.{error}") from None


def _survive(func: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    try:
        func(*args, **kwargs)
    except Exception as error:  # kazoo would log it with a traceback
        _log.error("the ZooKeeper client failed (%s); restarting it", error)


class _LastWords(logging.Handler):
    """Keeps kazoo's last message, and only passes on messages that should never occur.

    kazoo logs every attempt. Messages below WARNING, which may contain passwords, are dropped.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            _log.error("%s", record.getMessage(), exc_info=record.exc_info)
        else:
            self.text = record.getMessage()


class _Watcher:
    """kazoo's callback for a watched path; kazoo keeps only one of several equal callbacks."""

    __slots__ = ("_inbox", "_on_change", "_path")

    def __init__(self, inbox: _Inbox, path: str, on_change: Callable[[str], None]) -> None:
        self._inbox = inbox
        self._path = path
        self._on_change = on_change

    def __call__(self, event: Any) -> None:
        if event.type != EventType.NONE:  # else the connection was lost without a change
            self._inbox.put(self._on_change, self._path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Watcher) and self._path == other._path

    def __hash__(self) -> int:
        return hash(self._path)


class Connection:
    """A connection that sends requests, reconnecting if necessary; all paths are absolute."""

    def __init__(self, settings: Settings, on_state: OnState) -> None:
        """Create it. `on_state` is called with new states and session ids, in the loop's thread."""
        hosts, _ = hosts_and_chroot(settings.connect)
        self._inbox = _Inbox(asyncio.get_running_loop())
        self._on_state = on_state
        self._last_words = _LastWords()
        self._is_stopping = False
        self._waiting: dict[asyncio.Future[Any], None] = {}
        self._client = _client(settings, hosts, self._last_words)
        self._client.add_listener(self._state_changed)

    @property
    def last_words(self) -> str:
        """Why the last attempt failed."""
        return self._last_words.text

    @property
    def has_given_up(self) -> bool:
        """Is true if a malformed response, for example, has ended kazoo's thread.

        Then call `restart`.
        """
        return self._client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)

    def start(self) -> None:
        """Start connecting, without waiting."""
        self._client.start_async()

    async def restart(self) -> None:
        """Start again, with another session."""
        await asyncio.get_running_loop().run_in_executor(None, self._client.start_async)

    async def stop(self) -> None:
        """End the session; no more events follow."""
        self._is_stopping = True
        self.give_up_waiting()
        await asyncio.get_running_loop().run_in_executor(None, self._stop)

    def end_session(self) -> None:
        """End the session immediately, from any thread, even if the event loop is blocked."""
        self._stop()

    def give_up_waiting(self) -> None:
        """Fail all requests waiting for a response, as if the connection were lost."""
        for future in list(self._waiting):
            if not future.done():
                future.set_exception(ConnectionLoss("its session has expired"))

    def _stop(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except WriterNotClosedException:
            _log.debug("kazoo is still waiting for a server; its thread ends after this attempt")

    def is_in_session(self, session_id: int) -> bool:
        """Return whether this session is the current one. Called in kazoo's thread."""
        client_id = self._client.client_id
        return client_id is not None and client_id[0] == session_id

    def send(self, request: Any) -> asyncio.Future[Any]:
        """Send a request, and return a future for the response or kazoo's error.

        Requests are executed in the order of these calls.
        """
        reply = _Reply(self._inbox, asyncio.get_running_loop().create_future())
        self._waiting[reply.future] = None
        reply.future.add_done_callback(self._waiting.pop)
        # kazoo's own methods do the same, but need two more threads for the results.
        self._client._call(request, reply)
        return reply.future

    def watcher(self, path: str, on_change: Callable[[str], None]) -> Callable[[Any], None]:
        """Return the callback for a watch: `on_change(path)` is called in the loop's thread."""
        return _Watcher(self._inbox, path, on_change)

    def _state_changed(self, state: str) -> None:
        """Pass on kazoo's new state. Called in kazoo's thread."""
        client_id = self._client.client_id
        session_id = client_id[0] if client_id is not None else 0
        self._inbox.put(self._notify, _STATES[state], session_id)

    def _notify(self, state: SessionState, session_id: int) -> None:
        # After `stop`, the listener may no longer exist.
        if not self._is_stopping:
            self._on_state(state, session_id)


def _identity(settings: Settings) -> dict[str, Any]:
    """Return kazoo's arguments for the credentials."""
    if not settings.credentials:
        return {}
    if not settings.uses_sasl:
        return {"auth_data": [("digest", settings.credentials)]}
    user, _, password = settings.credentials.partition(":")
    options = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
    return {"sasl_options": options}


def _client(settings: Settings, hosts: str, last_words: logging.Handler) -> KazooClient:
    # The logging configuration does not affect a logger without a parent.
    logger = logging.Logger("kazoo", logging.WARNING)
    logger.addHandler(last_words)
    session_s = settings.session_timeout_ms / 1000
    # As in ZooKeeper's own client, try each server before the session expires.
    host_timeout_s = min(session_s / len(hosts.split(",")), _LONGEST_SILENCE_S)
    handler = _Handler(host_timeout_s, settings.tls)
    retry = KazooRetry(
        max_tries=-1,
        delay=_FIRST_RETRY_S,
        max_delay=_LAST_RETRY_S,
        sleep_func=handler.sleep_func,
    )
    return KazooClient(
        hosts=hosts,
        timeout=session_s,
        handler=handler,
        connection_retry=retry,
        logger=logger,
        **_identity(settings),
        use_ssl=settings.tls is not None,
    )
