"""A session with any ZooKeeper server, by the bytes of its protocol: each response is a tuple.

What differs between two servers is left out or has a mark: times are dropped, the number of a
transaction is a `Zxid`, and the id of a session is a letter.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from struct import Struct, pack

from barnabas.zookeeper.codes import Op
from barnabas.zookeeper.jute import Acl, JuteReader, acls_bytes, buffer_bytes, string_bytes

PATIENCE_S = 60.0
SESSION_MS = 60_000

_INT = Struct(">i")
_LAST = pack(">i?i", -1, True, -1)


class Zxid(int):
    """The number of a transaction, which is compared by its rank."""


def path_body(path: str, *numbers: int) -> bytes:
    return string_bytes(path) + b"".join(map(_INT.pack, numbers))


def watch_body(path: str, watch: bool) -> bytes:
    return string_bytes(path) + pack(">?", watch)


def create_body(path: str, data: bytes | None, acl: Sequence[Acl], flags: int) -> bytes:
    return string_bytes(path) + buffer_bytes(data) + acls_bytes(acl) + _INT.pack(flags)


def create_ttl_body(
    path: str, data: bytes | None, acl: Sequence[Acl], flags: int, ttl_ms: int
) -> bytes:
    return create_body(path, data, acl, flags) + pack(">q", ttl_ms)


def set_data_body(path: str, data: bytes | None, version: int) -> bytes:
    return string_bytes(path) + buffer_bytes(data) + _INT.pack(version)


def set_acl_body(path: str, acl: Sequence[Acl], version: int) -> bytes:
    return string_bytes(path) + acls_bytes(acl) + _INT.pack(version)


def multi_body(operations: Sequence[tuple[int, bytes]]) -> bytes:
    return b"".join(pack(">i?i", op, False, -1) + body for op, body in operations) + _LAST


class WireSession:
    """A session and its connection; `name` stands for its id."""

    def __init__(self, port: int, names: dict[int, str], name: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        self._names = names
        self._xid = 0
        self._send(pack(">iqiqi", 0, 0, SESSION_MS, 0, 16) + bytes(16) + b"\0")
        reader = JuteReader(self._receive())
        reader.i32()
        self.timeout_ms = reader.i32()
        names[reader.i64()] = name

    def close(self) -> None:
        self.ask(Op.CLOSE_SESSION, b"")
        self._socket.close()

    def ask(self, op: int, body: bytes) -> list[object]:
        """Sends a request; returns the events before its response, and the response."""
        self._xid += 1
        xid = -4 if op == Op.AUTH else self._xid
        self._send(pack(">ii", xid, op) + body)
        found: list[object] = []
        while True:
            reader = JuteReader(self._receive())
            got, _, error = reader.i32(), reader.i64(), reader.i32()
            if got == xid:
                break
            assert (got, error) == (-1, 0), (got, error)
            found.append(("event", reader.i32(), reader.i32(), reader.string()))
        # A login that has failed is answered with a whole response, too.
        has_body = not error or op == Op.SASL
        found.append((op, error, self._body(op, reader) if has_body else ()))
        assert reader.left == 0, (op, reader.left)
        return found

    def _body(self, op: int, reader: JuteReader) -> tuple[object, ...]:
        shapes: dict[int, tuple[Callable[[JuteReader], object], ...]] = {
            Op.CREATE: (JuteReader.string,),
            Op.SYNC: (JuteReader.string,),
            Op.CREATE2: (JuteReader.string, self._stat),
            Op.CREATE_CONTAINER: (JuteReader.string, self._stat),
            Op.CREATE_TTL: (JuteReader.string, self._stat),
            Op.SASL: (JuteReader.buffer,),
            Op.SET_DATA: (self._stat,),
            Op.SET_ACL: (self._stat,),
            Op.EXISTS: (self._stat,),
            Op.GET_DATA: (JuteReader.buffer, self._stat),
            Op.GET_ACL: (JuteReader.acls, self._stat),
            Op.GET_CHILDREN: (_sorted,),
            Op.GET_CHILDREN2: (_sorted, self._stat),
            Op.GET_EPHEMERALS: (_sorted,),
            Op.GET_ALL_CHILDREN_NUMBER: (JuteReader.i32,),
            Op.ADD_WATCH: (JuteReader.i32,),
            Op.WHO_AM_I: (_clients,),
            Op.MULTI: (self._results,),
            Op.MULTI_READ: (self._results,),
        }
        return tuple(each(reader) for each in shapes.get(op, ()))

    def _results(self, reader: JuteReader) -> list[object]:
        results: list[object] = []
        while True:
            op, is_last, error = reader.i32(), reader.boolean(), reader.i32()
            if is_last:
                return results
            body = (reader.i32(),) if op == Op.ERROR else self._body(op, reader)
            results.append((op, error, body))

    def _stat(self, reader: JuteReader) -> tuple[object, ...]:
        czxid, mzxid = Zxid(reader.i64()), Zxid(reader.i64())
        reader.i64()
        reader.i64()
        versions = [reader.i32() for _ in range(3)]
        owner = reader.i64()
        shape = (*versions, self._names.get(owner, owner), reader.i32(), reader.i32())
        return (czxid, mzxid, Zxid(reader.i64()), *shape)

    def _send(self, body: bytes) -> None:
        self._socket.sendall(_INT.pack(len(body)) + body)

    def _receive(self) -> bytes:
        return self._exactly(_INT.unpack(self._exactly(_INT.size))[0])

    def _exactly(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            part = self._socket.recv(count - len(received))
            assert part, "the server has closed the connection"
            received += part
        return received


def with_ranks(found: object, ranks: dict[int, int] | None = None) -> object:
    """Replaces each number of a transaction by its rank among all in `found`."""
    if ranks is None:
        ranks = {zxid: rank for rank, zxid in enumerate(sorted(set(_zxids(found))))}
    if isinstance(found, Zxid):
        return ("zxid", ranks[found])
    if isinstance(found, list | tuple) and not isinstance(found, Acl):
        return [with_ranks(each, ranks) for each in found]
    return found


def _zxids(found: object) -> list[int]:
    if isinstance(found, Zxid):
        return [found]
    if isinstance(found, list | tuple) and not isinstance(found, Acl):
        return [zxid for each in found for zxid in _zxids(each)]
    return []


def _sorted(reader: JuteReader) -> list[str]:
    return sorted(reader.strings())


def _clients(reader: JuteReader) -> list[tuple[str, str]]:
    return sorted((reader.string(), reader.string()) for _ in range(reader.count(8)))
