"""Encodes and decodes the records of ZooKeeper's client protocol (its format is called jute).

All numbers are big-endian. A string or a buffer follows its length (i32, -1 for null), and a vector
follows the number of its items. Each frame follows its own length. Every length is checked against
the bytes that are left, so malformed bytes raise CorruptData before any memory is allocated.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from struct import error as StructError

from barnabas.errors import CorruptData
from barnabas.named_tuple import NamedTuple

MAX_FRAME_BYTES = 0xFFFFF
"""ZooKeeper's default for jute.maxbuffer."""

_INT = Struct(">i")
_LONG = Struct(">q")
_STAT = Struct(">qqqqiiiqiiq")
_REPLY = Struct(">iqi")
_EVENT = Struct(">iqiii")
_LEAST_ACL_BYTES = 12
# Most of a request's time is spent on reading its fields, so they are read without detours.
_read_int, _read_long = _INT.unpack_from, _LONG.unpack_from
_SYNC_CONNECTED = 3
_EVENT_XID = -1


class Acl(NamedTuple):
    """Grants permissions to an identity."""

    perms: int
    scheme: str
    id: str


class Stat(NamedTuple):
    """Describes a node, with ZooKeeper's fields in ZooKeeper's order."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class JuteReader:
    """Reads the fields of a frame one after another."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """The number of bytes that have not been read."""
        return len(self._data) - self._at

    def i32(self) -> int:
        at = self._at
        number: int
        try:
            (number,) = _read_int(self._data, at)
        except StructError:
            raise _cut_short() from None
        self._at = at + 4
        return number

    def i64(self) -> int:
        at = self._at
        number: int
        try:
            (number,) = _read_long(self._data, at)
        except StructError:
            raise _cut_short() from None
        self._at = at + 8
        return number

    def boolean(self) -> bool:
        return self._take(1) != b"\0"

    def buffer(self) -> bytes | None:
        length = self.i32()
        if length < -1:
            raise CorruptData(f"a buffer has a length of {length}")
        return None if length == -1 else self._take(length)

    def string(self) -> str:
        """Read a string. Null is read as an empty string, which is no valid path or name."""
        try:
            return (self.buffer() or b"").decode()
        except UnicodeDecodeError as error:
            raise CorruptData(f"a string is not UTF-8: {error.reason}") from None

    def count(self, least_bytes: int) -> int:
        """Read the number of items of a vector whose items have at least `least_bytes` bytes."""
        count = self.i32()
        if count < -1 or count * least_bytes > self.left:
            raise CorruptData(f"a vector has {count} items, but only {self.left} bytes follow")
        return max(count, 0)

    def strings(self) -> list[str]:
        return [self.string() for _ in range(self.count(_INT.size))]

    def acls(self) -> list[Acl]:
        return [
            Acl(self.i32(), self.string(), self.string())
            for _ in range(self.count(_LEAST_ACL_BYTES))
        ]

    def _take(self, length: int) -> bytes:
        start = self._at
        end = start + length
        if end > len(self._data):
            raise CorruptData(f"a record needs {length} more bytes, but only {self.left} follow")
        self._at = end
        return self._data[start:end]


def _cut_short() -> CorruptData:
    return CorruptData("a record ends in the middle of a number")


def int_bytes(number: int) -> bytes:
    return _INT.pack(number)


def long_bytes(number: int) -> bytes:
    return _LONG.pack(number)


def buffer_bytes(data: bytes | None) -> bytes:
    return _INT.pack(-1) if data is None else _INT.pack(len(data)) + data


def string_bytes(text: str) -> bytes:
    return buffer_bytes(text.encode())


def strings_bytes(texts: Iterable[str]) -> bytes:
    parts = [string_bytes(each) for each in texts]
    return _INT.pack(len(parts)) + b"".join(parts)


def acls_bytes(acls: Iterable[Acl]) -> bytes:
    parts = [
        _INT.pack(each.perms) + string_bytes(each.scheme) + string_bytes(each.id) for each in acls
    ]
    return _INT.pack(len(parts)) + b"".join(parts)


def stat_bytes(stat: Stat) -> bytes:
    return _STAT.pack(*stat)


def reply_frame(xid: int, zxid: int, error: int, body: bytes = b"") -> bytes:
    """Return the response to a request as a whole frame."""
    return b"".join((_INT.pack(_REPLY.size + len(body)), _REPLY.pack(xid, zxid, error), body))


def event_frame(kind: int, path: str) -> bytes:
    """Return the notification of a watch as a whole frame."""
    body = _EVENT.pack(_EVENT_XID, -1, 0, kind, _SYNC_CONNECTED) + string_bytes(path)
    return _INT.pack(len(body)) + body


class ConnectRequest(NamedTuple):
    """The first record of a connection."""

    last_zxid: int
    timeout_ms: int
    session_id: int
    password: bytes
    has_read_only: bool
    """Whether the client knows the field `readOnly`, and expects it in the response."""


def connect_request(frame: bytes) -> ConnectRequest:
    """Decode the first frame of a connection. Raises CorruptData."""
    reader = JuteReader(frame)
    reader.i32()  # the version of the protocol, which is always 0
    last_zxid, timeout_ms, session_id = reader.i64(), reader.i32(), reader.i64()
    password = reader.buffer() or b""
    return ConnectRequest(last_zxid, timeout_ms, session_id, password, reader.left > 0)


def connect_frame(timeout_ms: int, session_id: int, password: bytes, has_read_only: bool) -> bytes:
    """Return the response to a ConnectRequest. A timeout of 0 says that the session has expired."""
    body = _INT.pack(0) + _INT.pack(timeout_ms) + _LONG.pack(session_id) + buffer_bytes(password)
    body += b"\0" * has_read_only
    return _INT.pack(len(body)) + body
