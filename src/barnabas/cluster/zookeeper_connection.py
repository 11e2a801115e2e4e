"""Wraps kazoo's client, which has a thread of its own, and passes its events to the event loop.

kazoo finds a server, keeps the session alive, and begins a new session whenever one has expired.
Its thread calls nothing but `_Inbox.put`. The events are handled in order, in the thread of the
event loop: a response is handled before a later loss of the connection, and the end of a session
before the beginning of the next one.
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
    """Raised if a response is malformed, so it is unknown whether the request had an effect."""


OnState = Callable[[SessionState, int], None]


class _Inbox:
    """A queue of calls to run on the event loop. The loop is woken once for all pending calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._is_waking = False

    def put(self, call: Callable[..., None], *arguments: Any) -> None:
        """Add a call to the queue. This can be called from any thread."""
        self._calls.append((call, arguments))
        if not self._is_waking:
            self._is_waking = True
            try:
                self._loop.call_soon_threadsafe(self._empty)
            except RuntimeError:
                _log.debug("the event loop is closed: dropping an event from ZooKeeper")

    def _empty(self) -> None:
        # set this before taking the first call, so that the loop is woken again for later calls
        self._is_waking = False
        while self._calls:
            call, arguments = self._calls.popleft()
            try:
                call(*arguments)
            except Exception as error:
                context = {"message": "handling an event from ZooKeeper failed", "exception": error}
                self._loop.call_exception_handler(context)


class _Reply:
    """Receives a response in kazoo's thread and passes it to `future` on the event loop."""

    __slots__ = ("_inbox", "future")

    def __init__(self, inbox: _Inbox, future: asyncio.Future[Any]) -> None:
        self._inbox = inbox
        self.future = future

    def set(self, value: Any = None) -> None:
        self._inbox.put(self._on_answer, value)

    def set_exception(self, error: Exception) -> None:
        # The error may be a struct.error in kazoo, for example. The request may have taken effect.
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
    """kazoo's thread handler without its two threads for callbacks, which are short here."""

    def __init__(self, host_timeout_s: float, tls: TlsSettings | None) -> None:
        """Create the handler. If TLS is requested but not possible, raises ConfigError."""
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
        """Limit the wait for a silent server, so that neither `stop` nor the session is delayed.

        A server that is starting accepts connections and then drops them. kazoo would wait for the
        first response for the length of a whole session.
        """
        left_s = _UNBOUNDED_S if timeout is None else timeout
        # When kazoo can be woken, it waits for two sockets. In the middle of a request or response,
        # it waits for only one.
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
        """Limit how long kazoo waits for a host that does not respond.

        The connection uses our TLS, because kazoo's TLS supports only PEM files.
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
        """Create a TLS context from the current files.

        If they are unusable, keep the previous context.
        """
        assert self._context is not None
        try:
            self._context = _context(tls)
        except ConfigError as error:
            _log.error("keeping the previous certificates for connections to ZooKeeper: %s", error)
        return self._context


def _context(tls: TlsSettings) -> ssl.SSLContext:
    # not imported at the top, because few clusters use TLS here
    from barnabas.security.tls import client_context

    try:
        return client_context(tls)
    except ConfigError as error:
        raise ConfigError(f"zookeeper.{error}") from None


def _survive(func: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    try:
        func(*args, **kwargs)
    except Exception as error:  # kazoo would log a traceback
        _log.error("the ZooKeeper client failed (%s); restarting it", error)


class _LastWords(logging.Handler):
    """Stores kazoo's last warning, and logs only kazoo's errors.

    kazoo logs every attempt to connect. Messages below WARNING are dropped, because they may
    contain passwords.
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
    """The callback for a watched path.

    If several callbacks are equal, kazoo keeps only one of them.
    """

    __slots__ = ("_inbox", "_on_change", "_path")

    def __init__(self, inbox: _Inbox, path: str, on_change: Callable[[str], None]) -> None:
        self._inbox = inbox
        self._path = path
        self._on_change = on_change

    def __call__(self, event: Any) -> None:
        if event.type != EventType.NONE:  # in all other cases, only the connection was lost
            self._inbox.put(self._on_change, self._path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Watcher) and self._path == other._path

    def __hash__(self) -> int:
        return hash(self._path)


class Connection:
    """A connection that sends requests and reconnects when it is lost. All paths are absolute."""

    def __init__(self, settings: Settings, on_state: OnState) -> None:
        """Create the connection.

        `on_state` is called on the event loop, with each new state and its session id.
        """
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
        """Why kazoo's last attempt to connect failed."""
        return self._last_words.text

    @property
    def has_given_up(self) -> bool:
        """True if kazoo's thread has ended, for example because of a malformed response.

        In that case, `restart` must be called.
        """
        return self._client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)

    def start(self) -> None:
        """Start to connect, and return without waiting."""
        self._client.start_async()

    async def restart(self) -> None:
        """Start again with a new session."""
        await asyncio.get_running_loop().run_in_executor(None, self._client.start_async)

    async def stop(self) -> None:
        """End the session. No events are reported afterwards."""
        self._is_stopping = True
        self.give_up_waiting()
        await asyncio.get_running_loop().run_in_executor(None, self._stop)

    def end_session(self) -> None:
        """End the session immediately.

        This can be called from any thread, even if the event loop is blocked.
        """
        self._stop()

    def give_up_waiting(self) -> None:
        """Fail all requests that are waiting for a response, as if the connection had been lost."""
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
        """Return whether this is still the current session. This is called in kazoo's thread."""
        client_id = self._client.client_id
        return client_id is not None and client_id[0] == session_id

    def send(self, request: Any) -> asyncio.Future[Any]:
        """Send a request, and return a future for the response or an error from kazoo.

        Requests are executed in the order in which this method was called.
        """
        reply = _Reply(self._inbox, asyncio.get_running_loop().create_future())
        self._waiting[reply.future] = None
        reply.future.add_done_callback(self._waiting.pop)
        # kazoo's own methods do the same, but they need two more threads to handle results.
        self._client._call(request, reply)
        return reply.future

    def watcher(self, path: str, on_change: Callable[[str], None]) -> Callable[[Any], None]:
        """Return a callback for a watch, which calls `on_change(path)` on the event loop."""
        return _Watcher(self._inbox, path, on_change)

    def _state_changed(self, state: str) -> None:
        """Report kazoo's new state. This is called in kazoo's thread."""
        client_id = self._client.client_id
        session_id = client_id[0] if client_id is not None else 0
        self._inbox.put(self._notify, _STATES[state], session_id)

    def _notify(self, state: SessionState, session_id: int) -> None:
        # The listener may no longer exist after `stop`.
        if not self._is_stopping:
            self._on_state(state, session_id)


def _identity(settings: Settings) -> dict[str, Any]:
    """Return the arguments that pass the credentials to kazoo."""
    if not settings.credentials:
        return {}
    if not settings.uses_sasl:
        return {"auth_data": [("digest", settings.credentials)]}
    user, _, password = settings.credentials.partition(":")
    options = {"mechanism": "DIGEST-MD5", "username": user, "password": password}
    return {"sasl_options": options}


def _client(settings: Settings, hosts: str, last_words: logging.Handler) -> KazooClient:
    # This logger has no parent, so the logging configuration does not affect it.
    logger = logging.Logger("kazoo", logging.WARNING)
    logger.addHandler(last_words)
    session_s = settings.session_timeout_ms / 1000
    # Every server must be tried before the session expires, as in ZooKeeper's own client.
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
