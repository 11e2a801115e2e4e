"""kazoo's client and its one thread, which ends here: whatever it has to say, the loop says on.

kazoo finds a server, keeps the session alive, and begins the next session when one is over; it
does so for ever. Its thread calls nothing but `_Inbox.put`. What has come in is handed on in the
loop's thread, in the order in which it came: so an answer is there before the loss of the
connection that followed it, and the end of a session before the beginning of the next.
"""

from __future__ import annotations

import asyncio
import logging
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

_log = logging.getLogger(__name__)

_FIRST_RETRY_S = 0.05
_LAST_RETRY_S = 1.0
_LONGEST_SILENCE_S = 5.0
_LOOK_EVERY_S = 1.0
_FOR_EVER_S = 1e9
_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.EXPIRED,
}


class NotUnderstood(Exception):
    """An answer came that is none; whether the question had an effect is not known."""


OnState = Callable[[SessionState, int], None]


class _Inbox:
    """Calls for the loop, in order; however many there are, the loop is woken once for all."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._is_waking = False

    def put(self, call: Callable[..., None], *arguments: Any) -> None:
        """From any thread."""
        self._calls.append((call, arguments))
        if not self._is_waking:
            self._is_waking = True
            try:
                self._loop.call_soon_threadsafe(self._empty)
            except RuntimeError:
                _log.debug("the loop is closed: nobody hears ZooKeeper any more")

    def _empty(self) -> None:
        self._is_waking = False  # before the first one is taken: what comes now wakes anew
        while self._calls:
            call, arguments = self._calls.popleft()
            try:
                call(*arguments)
            except Exception as error:
                context = {"message": "what ZooKeeper tells has made an error", "exception": error}
                self._loop.call_exception_handler(context)


class _Reply:
    """What kazoo gives an answer to; `future` is for the loop."""

    __slots__ = ("_inbox", "future")

    def __init__(self, inbox: _Inbox, future: asyncio.Future[Any]) -> None:
        self._inbox = inbox
        self.future = future

    def set(self, value: Any = None) -> None:
        self._inbox.put(self._answered, value)

    def set_exception(self, error: Exception) -> None:
        if not isinstance(error, ZookeeperError):
            error = NotUnderstood(str(error))
        self._inbox.put(self._failed, error)

    def _answered(self, value: Any) -> None:
        if not self.future.done():
            self.future.set_result(value)

    def _failed(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threads, less the two that would only call callbacks: ours do next to nothing."""

    def __init__(self, host_timeout_s: float) -> None:
        super().__init__()
        self._host_timeout_s = host_timeout_s

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def spawn(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return super().spawn(_survived, func, *args, **kwargs)

    def dispatch_callback(self, callback: Any) -> None:
        callback.func(*callback.args)

    def select(
        self, reading: list[Any], writing: list[Any], _: list[Any], timeout: float | None = None
    ) -> Any:
        """A server that says nothing must hold up neither the end nor the session.

        One that is just starting takes connections of which it never hears again, and kazoo would
        wait for its first answer as long as the session lives.
        """
        left_s = _FOR_EVER_S if timeout is None else timeout
        # kazoo waits for two sockets where it can be woken, and for one where it cannot: there it
        # is in the middle of a request or an answer.
        is_held_up = len(reading) + len(writing) == 1
        if is_held_up:
            left_s = min(left_s, self._host_timeout_s)
        while True:
            ready = super().select(reading, writing, [], min(left_s, _LOOK_EVERY_S))
            left_s -= _LOOK_EVERY_S
            is_over = is_held_up and not self._running
            if any(ready) or is_over or left_s <= 0:
                return ready

    def create_connection(self, *args: Any, **kwargs: Any) -> Any:
        """One host that does not answer must not take the time of all."""
        return super().create_connection(*args, **{**kwargs, "timeout": self._host_timeout_s})


def _survived(func: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    try:
        func(*args, **kwargs)
    except Exception as error:  # kazoo's logger has had it, with where it comes from
        _log.error("ZooKeeper's client has given up (%s) and begins anew", error)


class _LastWords(logging.Handler):
    """Keeps what kazoo said last, and lets through only what should never happen.

    kazoo tells of every attempt; and below WARNING, where nobody listens, of passwords.
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
    """What kazoo calls when a path has changed: equal ones are kept once."""

    __slots__ = ("_inbox", "_on_change", "_path")

    def __init__(self, inbox: _Inbox, path: str, on_change: Callable[[str], None]) -> None:
        self._inbox = inbox
        self._path = path
        self._on_change = on_change

    def __call__(self, event: Any) -> None:
        if event.type != EventType.NONE:  # else nothing changed, but the connection went
            self._inbox.put(self._on_change, self._path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Watcher) and self._path == other._path

    def __hash__(self) -> int:
        return hash(self._path)


class Connection:
    """Sends what it is given, if need be when there is a connection again; paths are whole ones."""

    def __init__(self, settings: Settings, on_state: OnState) -> None:
        """`on_state` hears every change, in the loop's thread, with the id of the session."""
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
        """kazoo's thread has ended, as it does where a server talks nonsense: `restart` it."""
        return self._client.client_state in (KeeperState.CLOSED, KeeperState.AUTH_FAILED)

    def start(self) -> None:
        """Returns at once."""
        self._client.start_async()

    async def restart(self) -> None:
        """Begin with another session."""
        await asyncio.get_running_loop().run_in_executor(None, self._client.start_async)

    async def stop(self) -> None:
        """Ends the session; nothing is heard of it any more."""
        self._is_stopping = True
        self.give_up_waiting()
        await asyncio.get_running_loop().run_in_executor(None, self._stop)

    def give_up_waiting(self) -> None:
        """No answer comes any more to what was sent: each fails as if the connection had gone."""
        for future in list(self._waiting):
            if not future.done():
                future.set_exception(ConnectionLoss("its session is over"))

    def _stop(self) -> None:
        try:
            self._client.stop()
            self._client.close()
        except WriterNotClosedException:
            _log.debug("kazoo still waits for a server; its thread ends when it has tried")

    def is_in_session(self, session_id: int) -> bool:
        """In kazoo's thread, while a request is being sent: whether it is sent in this session."""
        client_id = self._client.client_id
        return client_id is not None and client_id[0] == session_id

    def send(self, request: Any) -> asyncio.Future[Any]:
        """The answer, or kazoo's error. Requests are carried out in the order of these calls."""
        reply = _Reply(self._inbox, asyncio.get_running_loop().create_future())
        self._waiting[reply.future] = None
        reply.future.add_done_callback(self._waiting.pop)
        # kazoo's own methods come to this, but for their own results, which want two threads more.
        self._client._call(request, reply)
        return reply.future

    def watcher(self, path: str, on_change: Callable[[str], None]) -> Callable[[Any], None]:
        """For a request that leaves a watch: `on_change(path)` is called in the loop's thread."""
        return _Watcher(self._inbox, path, on_change)

    def _state_changed(self, state: str) -> None:
        """In kazoo's thread."""
        client_id = self._client.client_id
        session_id = client_id[0] if client_id is not None else 0
        self._inbox.put(self._tell, _STATES[state], session_id)

    def _tell(self, state: SessionState, session_id: int) -> None:
        if not self._is_stopping:
            self._on_state(state, session_id)


def forget(answer: asyncio.Future[Any]) -> None:
    """Look at an error, so that nobody complains that nobody has."""
    if not answer.cancelled():
        answer.exception()


def _client(settings: Settings, hosts: str, last_words: logging.Handler) -> KazooClient:
    # A logger that hangs on no other one: the configuration of logging does not change it.
    logger = logging.Logger("kazoo", logging.WARNING)
    logger.addHandler(last_words)
    session_s = settings.session_timeout_ms / 1000
    handler = _Handler(min(session_s / len(hosts.split(",")), _LONGEST_SILENCE_S))
    retry = KazooRetry(
        max_tries=-1,
        delay=_FIRST_RETRY_S,
        max_delay=_LAST_RETRY_S,
        sleep_func=handler.sleep_func,
    )
    tls = settings.tls
    return KazooClient(
        hosts=hosts,
        timeout=session_s,
        handler=handler,
        connection_retry=retry,
        logger=logger,
        auth_data=[("digest", settings.credentials)] if settings.credentials else None,
        use_ssl=tls is not None,
        ca=tls.trusted or None if tls else None,
        certfile=tls.own_certificate or None if tls else None,
        keyfile=tls.own_certificate or None if tls else None,
        keyfile_password=tls.password or None if tls else None,
        check_hostname=tls is not None and tls.is_host_checked,
    )
