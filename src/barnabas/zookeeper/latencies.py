"""Counts responses and how long they took: those of the server, and those of each connection. Pure.

What is counted for each response costs time, so the last one is decoded only when somebody asks.
"""

from __future__ import annotations

import math
from struct import Struct
from typing import TypeAlias

from barnabas.zookeeper.codes import Op

REQUEST_BYTES = 8
"""The length of a request's head: its number, which the client has chosen, and its type."""

_HEAD = Struct(">ii")
_ERROR = slice(16, 20)  # in the frame of a response, behind the length, the number and the zxid
_OK = bytes(4)
_MOST_POSITIVE = 0x7F
CONNECTING = _HEAD.pack(0, Op.CREATE_SESSION)
_UNCOUNTED = frozenset(_HEAD.pack(0, op)[4:] for op in (Op.AUTH, Op.SASL))
_NONE = "NA"
_WRITES = {
    Op.CREATE: "CREA",
    Op.CREATE2: "CREA",
    Op.CREATE_CONTAINER: "CREA",
    Op.CREATE_TTL: "CREA",
    Op.DELETE: "DELE",
    Op.SET_DATA: "SETD",
    Op.SET_ACL: "SETA",
    Op.CHECK: "CHEC",
}
_OTHERS = {
    Op.CREATE_SESSION: "SESS",
    Op.CLOSE_SESSION: "CLOS",
    Op.PING: "PING",
    Op.MULTI: "MULT",
    Op.MULTI_READ: "MLTR",
    Op.SYNC: "SYNC",
    Op.EXISTS: "EXIS",
    Op.GET_DATA: "GETD",
    Op.GET_ACL: "GETA",
    Op.GET_CHILDREN: "GETC",
    Op.GET_CHILDREN2: "GETC",
    Op.GET_ALL_CHILDREN_NUMBER: "GETACN",
    Op.GET_EPHEMERALS: "GETE",
    Op.SET_WATCHES: "SETW",
    Op.SET_WATCHES2: "STW2",
    Op.ADD_WATCH: "ADDW",
    Op.CHECK_WATCHES: "CHKW",
    Op.REMOVE_WATCHES: "REMW",
    Op.WHO_AM_I: "HOMI",
}


Response: TypeAlias = tuple[bytes, bytes, int]
"""The head of the request, the frame of the response, and the last transaction at that time."""


class Latencies:
    """The shortest, the mean and the longest time between a request and its response."""

    __slots__ = ("_count", "_least_s", "_most_s", "_total_s")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._count = 0
        self._total_s = self._most_s = 0.0
        self._least_s = math.inf

    def add(self, seconds: float, count: int = 1) -> None:
        """Count responses that have taken the same time."""
        self._count += count
        self._total_s += seconds * count
        if seconds < self._least_s:
            self._least_s = seconds
        if seconds > self._most_s:
            self._most_s = seconds

    @property
    def least_ms(self) -> int:
        return round(self._least_s * 1000) if self._count else 0

    @property
    def mean_ms(self) -> float:
        return self._total_s * 1000 / self._count if self._count else 0.0

    @property
    def most_ms(self) -> int:
        return round(self._most_s * 1000)


class Responses(Latencies):
    """The responses of a connection, of which the last one is described in detail."""

    __slots__ = ("_last", "_xid")

    def reset(self) -> None:
        super().reset()
        self._xid = b""
        self._last: tuple[bytes, bytes, int, float, float] | None = None

    def count(self, response: Response, arrived_s: float, now_s: float, count: int) -> None:
        """Count responses that are sent at the same time, of which this is the last one."""
        request, frame, zxid = response
        self.add(now_s - arrived_s, count)
        self._last = (request, frame[_ERROR], zxid, now_s, now_s - arrived_s)
        # Pings, for example, have negative numbers. ZooKeeper shows the last operation's number.
        if request[0] <= _MOST_POSITIVE:
            self._xid = request[:4]

    def fields(self, established_ms: int, timeout_ms: int) -> str:
        """Return what ZooKeeper's word `cons` prints, in its order."""
        name, zxid, responded_ms, last_ms = _NONE, "f" * 16, 0, 0
        if self._last is not None:
            request, error, number, now_s, last_s = self._last
            name, zxid = _name(request, error), f"{number:x}"
            responded_ms, last_ms = int(now_s * 1000), round(last_s * 1000)
        xid = f"lcxid=0x{int.from_bytes(self._xid):x}," if self._xid else ""
        return (
            f"lop={name},est={established_ms},to={timeout_ms},{xid}lzxid=0x{zxid},"
            f"lresp={responded_ms},llat={last_ms},minlat={self.least_ms},"
            f"avglat={int(self.mean_ms)},maxlat={self.most_ms}"
        )


def is_counted(response: Response) -> bool:
    """Return whether ZooKeeper counts the response, which it does unless the client logs in."""
    return response[0][4:] not in _UNCOUNTED


def _name(request: bytes, error: bytes) -> str:
    """Return ZooKeeper's name of the operation. A write that has failed has none."""
    op: int
    _, op = _HEAD.unpack(request)
    if op in _WRITES:
        return _WRITES[op] if error == _OK else _NONE
    return _OTHERS.get(op, _NONE)
