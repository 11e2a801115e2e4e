"""A broker's client of our ZooKeeper server: one session after another, over the simulated network.

It encodes what a broker sends with the same classes as the broker's real client, which cannot run
here because it has threads. It has the same promises as `SimSession`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from struct import Struct, pack
from typing import TYPE_CHECKING, Any

from kazoo.exceptions import (  # type: ignore[import-untyped]
    NoNodeError,
    ZookeeperError,
)
from kazoo.protocol import serialization as kazoo_wire  # type: ignore[import-untyped]

from barnabas.cluster.store import Operation, OutcomeUnknown, SessionState, Znode
from barnabas.cluster.zookeeper import rights_of
from barnabas.cluster.zookeeper_requests import Commit, MultiRead, metadata_error, znode
from barnabas.errors import ConfigError
from barnabas.shielded import retrieve_error, shielded
from barnabas.zookeeper.codes import Op
from barnabas.zookeeper.jute import JuteReader, buffer_bytes
from simulation.keeper.wire import Wire
from simulation.whole.store_session import SimulatedClient

if TYPE_CHECKING:
    from simulation.whole.keeper_store import KeeperStore

_REPLY = Struct(">iqi")
_EVENT_XID, _PING_XID = -1, -2
_FIRST_RETRY_S, _LAST_RETRY_S = 0.05, 1.0
_PATIENCE_S = 6.0
_NO_NODE = (0, 0, 0)


class _Lost(Exception):
    """The connection is gone, and so is the answer."""


class _Close:
    """The request that ends the session."""

    type = int(Op.CLOSE_SESSION)

    def serialize(self) -> bytes:
        return b""

    def deserialize(self, answer: bytes, offset: int) -> None:
        """Return nothing, because the response is empty."""


class KeeperSession(SimulatedClient):
    """A client made by `KeeperStore.session`, in the context of its owner."""

    def __init__(self, store: KeeperStore, timeout_ms: int, host: str) -> None:
        """Begin to connect; `until_open` waits for that. `host`: where its owner runs."""
        super().__init__(SessionState.SUSPENDED)
        self._store = store
        self._timeout_ms = timeout_ms
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._password = bytes(16)
        self._wire: Wire | None = None
        self._is_greeted = False
        self._is_given_up = False
        self._heard_s = 0.0
        self._last_zxid = 0
        self._xid = 0
        self._sent: deque[tuple[int, Any, asyncio.Future[Any]]] = deque()
        self._connecting = self._loop.create_task(self._stay_connected())

    async def until_open(self) -> None:
        """Return when the first session has begun. Raises ConfigError if no server answers."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while self._state is not SessionState.CONNECTED:
                    await shielded(self._changed)
        except TimeoutError:
            self._end()
            raise ConfigError("no ZooKeeper answers") from None

    async def commit(self, operations: Sequence[Operation]) -> list[str | int]:
        path = operations[0].path if operations else "/"
        await self._until_connected(self._session_id, path)
        if not operations:
            return []
        commit = Commit(tuple(operations), "", _rights, lambda: True)
        try:
            zxid, answers = await self._ask(commit)
        except _Lost:
            reason = "the connection broke before the answer came"
            raise OutcomeUnknown(path, reason) from None
        except ZookeeperError as error:
            raise metadata_error(path, error) from error
        results = commit.results(answers)
        self._store.answered(zxid)
        return results

    async def close(self) -> None:
        if self._is_closed:
            return
        was_connected = self._state is SessionState.CONNECTED
        self._end()
        if was_connected:
            with suppress(_Lost, TimeoutError, ZookeeperError):
                async with asyncio.timeout(self._timeout_ms / 3000):
                    await self._ask(_Close())
        self._drop()

    def give_up(self) -> None:
        self._is_given_up = True
        if self._is_greeted:
            self._ask(_Close())
        if self._state is not SessionState.EXPIRED:
            self._loop.call_soon(self._become, SessionState.EXPIRED)

    def beat_by_itself(self) -> None:
        """Send one heartbeat, as a client does whose thread goes on while the broker's loop
        waits for a disk."""
        if not self._is_given_up and self._state is SessionState.CONNECTED:
            self._ping()
            self._heard_s = self._loop.time()

    # --- what befalls it -------------------------------------------------------------------------

    def cut(self) -> None:
        """Let nothing pass in either direction, without notifying either end."""
        self._store.cut(self._host)

    def mend(self) -> None:
        self._store.mend(self._host)

    # --- connections -----------------------------------------------------------------------------

    async def _stay_connected(self) -> None:
        retry_s = _FIRST_RETRY_S
        while not (self._is_closed or self._is_given_up):
            with suppress(OSError, TimeoutError):
                await self._connect()
            wire = self._wire
            if wire is not None and self._state is SessionState.CONNECTED:
                retry_s = _FIRST_RETRY_S
                await self._use(wire)
            was_expired = self._state is SessionState.EXPIRED and wire is not None
            self._drop()
            if self._state is SessionState.CONNECTED:
                self._become(SessionState.SUSPENDED)
            if not was_expired:
                await asyncio.sleep(retry_s)
                retry_s = min(2 * retry_s, _LAST_RETRY_S, self._timeout_ms / 4000)

    async def _connect(self) -> None:
        """Dial, and wait until the server accepts the session or reports its end."""
        async with asyncio.timeout(self._timeout_ms / 3000):
            address = self._store.address
            _, wire = await self._loop.create_connection(lambda: Wire(self._on_frame), *address)
            self._wire = wire
            session_id = 0 if self._state is SessionState.EXPIRED else self._session_id
            password = buffer_bytes(self._password if session_id else bytes(16))
            head = pack(">iqiq", 0, self._last_zxid, self._timeout_ms, session_id)
            wire.send(head + password + b"\0")
            while not self._is_greeted and not wire.lost.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_FIRST_RETRY_S):
                        await wire.lost.wait()

    async def _use(self, wire: Wire) -> None:
        """Send heartbeats until the connection is lost or silent."""
        while self._wire is wire and not wire.lost.is_set():
            if self._loop.time() - self._heard_s > self._timeout_ms * 2 / 3000:
                return
            self._ping()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timeout_ms / 3000):
                    await wire.lost.wait()

    def _drop(self) -> None:
        """Give up the connection; what it has sent may still arrive."""
        wire, self._wire = self._wire, None
        self._is_greeted = False
        sent, self._sent = self._sent, deque()
        if wire is not None:
            wire.drop()
        for _, _, answer in sent:
            if not answer.done():
                _fail(answer, _Lost())

    # --- what is sent ----------------------------------------------------------------------------

    def _ask(self, request: Any) -> asyncio.Future[Any]:
        """Return the number of the server's state and its answer. The future raises _Lost, or the
        server's error."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._wire is None or not self._is_greeted or self._wire.lost.is_set():
            _fail(answer, _Lost())
            return answer
        self._xid += 1
        self._sent.append((self._xid, request, answer))
        self._wire.send(pack(">ii", self._xid, request.type) + request.serialize())
        return answer

    def _ping(self) -> None:
        if self._wire is not None and self._is_greeted:
            self._wire.send(pack(">ii", _PING_XID, Op.PING))

    async def _read(self, paths: Sequence[str], session_id: int) -> list[Znode | None]:
        while True:
            await self._until_connected(session_id, paths[0])
            try:
                _, answers = await self._ask(MultiRead(paths))
            except _Lost:
                await asyncio.sleep(0)  # until the loss is noticed
                continue
            return [znode(*pair) for pair in answers]

    def _set_watch(self, path: str, is_set: Callable[[object], None]) -> None:
        def on_answer(answer: asyncio.Future[Any]) -> None:
            if answer.exception() is None and not self._is_closed:
                stat = answer.result()[1]
                is_set(_NO_NODE if stat is None else (stat.czxid, stat.mzxid, stat.pzxid))

        self._ask(kazoo_wire.Exists(path, self.watch)).add_done_callback(on_answer)
        children = self._ask(kazoo_wire.GetChildren(path, self.watch))
        children.add_done_callback(retrieve_error)

    # --- what arrives ----------------------------------------------------------------------------

    def _on_frame(self, frame: bytes) -> None:
        self._heard_s = self._loop.time()
        if self._wire is None:
            return
        if not self._is_greeted:
            self._on_greeting(JuteReader(frame))
            return
        xid, zxid, error = _REPLY.unpack_from(frame)
        self._last_zxid = max(self._last_zxid, zxid)
        if xid == _EVENT_XID:
            if not self._is_closed:
                self._watches.fire(_event_path(frame))
        elif xid != _PING_XID:
            expected, request, answer = self._sent.popleft()
            assert xid == expected, f"response {xid} has come instead of {expected}"
            if not answer.done():
                _settle(answer, request, (zxid, error, frame))

    def _on_greeting(self, reader: JuteReader) -> None:
        reader.i32()
        timeout_ms, session_id, password = reader.i32(), reader.i64(), reader.buffer()
        self._is_greeted = True
        if self._is_closed or self._is_given_up:
            return
        if not timeout_ms:
            self._become(SessionState.EXPIRED)
            return
        self._password = password or b""
        if session_id != self._session_id:
            self._session_id = session_id
            self._store.observer.opened(session_id, self._store.life_here())
        self._become(SessionState.CONNECTED)


def _rights(path: str) -> list[Any]:
    return rights_of(path, is_protected=False)


def _event_path(frame: bytes) -> str:
    reader = JuteReader(frame[_REPLY.size :])
    reader.i32()
    reader.i32()
    return reader.string()


def _settle(answer: asyncio.Future[Any], request: Any, reply: tuple[int, int, bytes]) -> None:
    zxid, error, frame = reply
    if error == NoNodeError.code and isinstance(request, kazoo_wire.Exists):
        answer.set_result((zxid, None))
    elif error:
        _fail(answer, kazoo_wire.EXCEPTIONS[error]())
    else:
        answer.set_result((zxid, request.deserialize(frame, _REPLY.size)))


def _fail(answer: asyncio.Future[Any], error: Exception) -> None:
    answer.set_exception(error)
    retrieve_error(answer)
