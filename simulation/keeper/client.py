"""A client of a ZooKeeper server that writes down what it sees. It runs on any asyncio loop.

Like Java's client, it continues its session over a new connection, and registers its watches there
again as of the last transaction that it has seen. It sends several requests without waiting.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from random import Random
from struct import pack
from typing import NamedTuple

from barnabas.zookeeper.codes import Op
from barnabas.zookeeper.jute import (
    Acl,
    JuteReader,
    acls_bytes,
    buffer_bytes,
    int_bytes,
    string_bytes,
    strings_bytes,
)
from simulation.keeper import records
from simulation.keeper.records import Answer, Event, Expired, Record, Request, Stat
from simulation.keeper.wire import Wire

_EVENT_XID, _PING_XID, _SET_WATCHES_XID = -1, -2, -8
_RETRY_S = 0.05
_OPEN = acls_bytes([Acl(31, "world", "anyone")])
_OPS = {
    records.DELETE: Op.DELETE,
    records.SET: Op.SET_DATA,
    records.GET: Op.GET_DATA,
    records.EXISTS: Op.EXISTS,
    records.CHILDREN: Op.GET_CHILDREN2,
    records.CLOSE: Op.CLOSE_SESSION,
}
_CREATED, _DELETED, _CHANGED, _CHILDREN = 1, 2, 3, 4


class Target(NamedTuple):
    """Where the server listens, and the timeout that a session asks for."""

    host: str
    port: int
    timeout_ms: int


class _Sent(NamedTuple):
    xid: int
    request: Request
    at: float


class Client:
    """A client with at most one session at a time."""

    def __init__(self, target: Target, random: Random) -> None:
        self.records: list[Record] = []
        self.random = random
        self.session = 0
        self.timeout_s = target.timeout_ms / 1000
        self._target = target
        self._password = bytes(16)
        self._wire: Wire | None = None
        self._is_connected = False
        self._connections = 0
        self._xid = 0
        self._last_zxid = 0
        self._heard_s = 0.0
        self._sent: deque[_Sent] = deque()
        self._watches: dict[str, set[str]] = {"data": set(), "exist": set(), "child": set()}
        self._changed = asyncio.Event()

    # ---- the connection ----

    async def connect(self) -> None:
        """Return when the session continues, or when a new one has begun."""
        while not self._is_connected:
            self.drop()
            with suppress(OSError, TimeoutError):
                await self._dial()
            if not self._is_connected:
                await asyncio.sleep(_RETRY_S * (1 + self.random.random()))

    def drop(self) -> None:
        """Break the connection. What was not answered is lost."""
        wire, self._wire = self._wire, None
        self._is_connected = False
        if wire is not None:
            wire.drop()
        for each in self._sent:
            self._note(each, error=records.LOST)
        self._sent.clear()
        self._changed.set()

    async def _dial(self) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self.timeout_s):
            _, made = await loop.create_connection(
                lambda: Wire(self._on_frame), self._target.host, self._target.port
            )
            wire = self._wire = made
            self._connections += 1
            timeout_ms = self._target.timeout_ms
            wire.send(
                pack(">iqiq", 0, self._last_zxid, timeout_ms, self.session)
                + buffer_bytes(self._password)
                + b"\0"
            )
            self._changed.clear()
            while not self._is_connected and not wire.lost.is_set() and self._wire is wire:
                await self._wait(wire)
        if wire.lost.is_set() or not self._is_connected:
            self.drop()

    async def _wait(self, wire: Wire) -> None:
        """Return when something has arrived or was lost, or after a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.timeout_s / 10):
                await self._changed.wait()
        self._changed.clear()
        if wire.lost.is_set() and self._wire is wire:
            self.drop()

    async def settle(self, most: int = 0) -> None:
        """Wait until at most this many requests wait for their responses, or the connection is
        lost. A connection on which nothing arrives for a third of the timeout is given up."""
        wire, loop = self._wire, asyncio.get_running_loop()
        since_s, before = loop.time(), len(self.records)
        while wire is not None and self._wire is wire and len(self._sent) > most:
            await self._wait(wire)
            if len(self.records) > before:
                since_s, before = loop.time(), len(self.records)
            elif loop.time() - since_s > self.timeout_s / 3:
                self.drop()

    async def rest(self, seconds: float) -> None:
        """Do nothing for a while but send pings."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + seconds
        while (left_s := until_s - loop.time()) > 0:
            await asyncio.sleep(min(left_s, self.timeout_s / 4))
            wire = self._wire
            if wire is not None and wire.lost.is_set():
                self.drop()
            elif wire is not None and self._is_connected:
                wire.send(pack(">ii", _PING_XID, Op.PING))
            if not self._is_connected:
                await self.connect()

    # ---- requests ----

    def ask(self, request: Request) -> None:
        """Send a request. The response is written down when it arrives."""
        wire, at = self._wire, asyncio.get_running_loop().time()
        if wire is None or not self._is_connected or wire.lost.is_set():
            self.drop()
            return
        self._xid += 1
        self._sent.append(_Sent(self._xid, request, at))
        op, body = encode(request)
        wire.send(pack(">ii", self._xid, op) + body)

    # ---- responses ----

    def _on_frame(self, frame: bytes) -> None:
        self._changed.set()
        reader = JuteReader(frame)
        if not self._is_connected:
            self._on_connected(reader)
            return
        xid, zxid, error = reader.i32(), reader.i64(), reader.i32()
        now_s = asyncio.get_running_loop().time()
        if xid == _EVENT_XID:
            self._on_event(reader, now_s)
        elif xid in (_PING_XID, _SET_WATCHES_XID):
            assert error == 0, error
        else:
            sent = self._sent.popleft()
            assert sent.xid == xid, f"response {xid} has come instead of {sent.xid}"
            self._last_zxid = max(self._last_zxid, zxid)
            self._heard_s = max(self._heard_s, sent.at)
            self._on_answer(sent, zxid, error, reader)

    def _on_connected(self, reader: JuteReader) -> None:
        loop = asyncio.get_running_loop()
        reader.i32()
        timeout_ms, session, password = reader.i32(), reader.i64(), reader.buffer() or b""
        if not timeout_ms:
            silent_s = loop.time() - self._heard_s
            self.records.append(Expired(self.session, loop.time(), silent_s, self.timeout_s))
            self.session, self._password = 0, bytes(16)
            for paths in self._watches.values():
                paths.clear()
            self.drop()
            return
        if not self.session:
            self._heard_s = loop.time()
        self.timeout_s = timeout_ms / 1000
        self.session, self._password, self._is_connected = session, password, True
        if any(self._watches.values()):
            lists = [strings_bytes(sorted(self._watches[kind])) for kind in self._watches]
            assert self._wire is not None
            self._wire.send(
                pack(">iiq", _SET_WATCHES_XID, Op.SET_WATCHES, self._last_zxid) + b"".join(lists)
            )

    def _on_event(self, reader: JuteReader, now_s: float) -> None:
        kind, _, path = reader.i32(), reader.i32(), reader.string()
        self.records.append(Event(self.session, kind, path, now_s))
        if kind in (_CREATED, _DELETED, _CHANGED):
            self._watches["data"].discard(path)
            self._watches["exist"].discard(path)
        if kind in (_DELETED, _CHILDREN):
            self._watches["child"].discard(path)

    def _on_answer(self, sent: _Sent, zxid: int, error: int, reader: JuteReader) -> None:
        request = sent.request
        if request.watch:
            self._remember_watch(request, error)
        if error:
            self._note(sent, zxid=zxid, error=error)
        elif request.kind == records.CREATE:
            self._note(sent, zxid=zxid, path=reader.string(), stat=_stat(reader))
        elif request.kind in (records.SET, records.EXISTS):
            self._note(sent, zxid=zxid, stat=_stat(reader))
        elif request.kind == records.GET:
            self._note(sent, zxid=zxid, data=reader.buffer() or b"", stat=_stat(reader))
        elif request.kind == records.CHILDREN:
            self._note(
                sent, zxid=zxid, children=tuple(sorted(reader.strings())), stat=_stat(reader)
            )
        else:
            self._note(sent, zxid=zxid)
        if request.kind == records.CLOSE:
            self._forget_session()

    def _forget_session(self) -> None:
        self.session, self._password = 0, bytes(16)
        for paths in self._watches.values():
            paths.clear()
        self.drop()

    def _remember_watch(self, request: Request, error: int) -> None:
        if request.kind == records.CHILDREN and not error:
            self._watches["child"].add(request.path)
        elif request.kind in (records.GET, records.EXISTS) and not error:
            self._watches["data"].add(request.path)
        elif request.kind == records.EXISTS and error == records.NO_NODE:
            self._watches["exist"].add(request.path)

    def _note(self, sent: _Sent, **found: object) -> None:
        now_s = asyncio.get_running_loop().time()
        answer = Answer(self.session, self._connections, sent.request, sent.at, now_s)
        self.records.append(answer._replace(**found))  # type: ignore[arg-type]


def encode(request: Request) -> tuple[int, bytes]:
    """Return a request's type and body."""
    path = string_bytes(request.path)
    if request.kind == records.CREATE:
        flags = request.is_ephemeral | request.is_sequential << 1
        return Op.CREATE2, path + buffer_bytes(request.data) + _OPEN + int_bytes(flags)
    body = path
    if request.kind == records.SET:
        body += buffer_bytes(request.data) + int_bytes(request.version)
    elif request.kind == records.DELETE:
        body += int_bytes(request.version)
    elif request.kind in records.READS:
        body += b"\1" if request.watch else b"\0"
    else:
        body = b""
    return _OPS[request.kind], body


def _stat(reader: JuteReader) -> Stat:
    czxid, mzxid, _, _ = reader.i64(), reader.i64(), reader.i64(), reader.i64()
    version, _, _ = reader.i32(), reader.i32(), reader.i32()
    return Stat(czxid, mzxid, version, reader.i64())
