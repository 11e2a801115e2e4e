"""Loads a ZooKeeper server from a process of its own, with frames that were encoded beforehand.

    python -m benchmarks.zookeeper_load PORT PID KIND CONNECTIONS WINDOW SECONDS

Each connection sends a window of requests in one piece, waits for all responses, and sends the same
window again. The responses to one kind of request have one length, so they are only counted while
time is measured; afterwards the length and the error code of each one are checked. It prints JSON.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from struct import Struct, pack
from typing import NamedTuple

from barnabas.zookeeper.codes import Op
from barnabas.zookeeper.tree import OPEN_ACL
from benchmarks.accounting import scheduled_seconds
from tests.kit.clients.zookeeper_wire import (
    create_body,
    multi_body,
    set_data_body,
    watch_body,
)

CHANGES = 10
"""The changes in a multi, which are writes of their own."""

NODES = 100
STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2,3]}'

_INT = Struct(">i")
_REPLY = Struct(">iiqi")
_PATIENCE_S = 60.0
_SESSION_MS = 60_000
_PIECE_BYTES = 1 << 20


class Outcome(NamedTuple):
    """What a load found."""

    requests: int
    seconds: float
    load_cpu_seconds: float
    server_cpu_seconds: float
    p50_ms: float
    p99_ms: float
    """From the first byte of a window to its last response."""

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


def main() -> None:
    port, pid, kind, connections, window, seconds = sys.argv[1:]
    clients = [_Client(int(port), kind, number, int(window)) for number in range(int(connections))]
    outcome = load(clients, int(pid), float(seconds))
    sys.stdout.write(json.dumps(outcome._asdict()) + "\n")


def load(clients: Sequence[_Client], pid: int, seconds: float) -> Outcome:
    """Keep the clients of the server `pid` busy for that long."""
    selector = selectors.DefaultSelector()
    for client in clients:
        selector.register(client.socket, selectors.EVENT_READ, client)
        client.run_alone()  # code is loaded, and the length of a response is known
    before, spent, began = scheduled_seconds(pid), time.process_time(), time.perf_counter()
    for client in clients:
        client.begin()
    left = len(clients)
    while left:
        for key, _ in selector.select(_PATIENCE_S):
            if key.data.has_finished() and time.perf_counter() - began < seconds:
                key.data.begin()
            elif not key.data.is_busy:
                selector.unregister(key.fileobj)
                left -= 1
    took, own = time.perf_counter() - began, time.process_time() - spent
    of_server = scheduled_seconds(pid) - before
    windows = sorted(each for client in clients for each in client.windows_s)
    for client in clients:
        client.check()
        client.socket.close()
    return Outcome(
        len(windows) * clients[0].count,
        took,
        own,
        of_server,
        windows[len(windows) // 2] * 1000,
        windows[len(windows) * 99 // 100] * 1000,
    )


class _Client:
    """A session with one window of requests."""

    def __init__(self, port: int, kind: str, number: int, window: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._send(pack(">iqiqi", 0, 0, _SESSION_MS, 0, 16) + bytes(16) + b"\0")
        self._receive()
        self._create_nodes(number)
        requests = [_request(kind, number, place) for place in range(window)]
        bodies = [pack(">ii", xid, op) + body for xid, (op, body) in enumerate(requests, 1)]
        self._window = b"".join(_INT.pack(len(each)) + each for each in bodies)
        self._first = bodies[0]
        self.count = window
        self._response_bytes = 0
        self._pieces: list[bytes] = []
        self._left = 0
        self._began_s = 0.0
        self.windows_s: list[float] = []

    @property
    def is_busy(self) -> bool:
        return self._left > 0

    def run_alone(self) -> None:
        """Send one request, and remember how long its response is."""
        self._send(self._first)
        self._response_bytes = _INT.size + len(self._receive())

    def begin(self) -> None:
        self._left = self.count * self._response_bytes
        self._began_s = time.perf_counter()
        self.socket.sendall(self._window)

    def has_finished(self) -> bool:
        """Read what has arrived, and return whether the window is complete."""
        piece = self.socket.recv(_PIECE_BYTES)
        assert piece, "the server has closed the connection"
        self._pieces.append(piece)
        self._left -= len(piece)
        if self._left:
            return False
        self.windows_s.append(time.perf_counter() - self._began_s)
        return True

    def check(self) -> None:
        """Every response came in its place, with its length and without an error."""
        received = b"".join(self._pieces)
        whole = len(self.windows_s) * self.count
        assert len(received) == whole * self._response_bytes, "a response has another length"
        for number in range(whole):
            length, xid, _, error = _REPLY.unpack_from(received, number * self._response_bytes)
            assert length == self._response_bytes - _INT.size
            assert (xid, error) == (number % self.count + 1, 0), (xid, error)

    def _create_nodes(self, number: int) -> None:
        for path in ("/load", f"/load/{number}", *(_path(number, each) for each in range(NODES))):
            self._send(pack(">ii", 1, Op.CREATE) + create_body(path, STATE, OPEN_ACL, 0))
            self._receive()  # an error if it exists already

    def _send(self, body: bytes) -> None:
        self.socket.sendall(_INT.pack(len(body)) + body)

    def _receive(self) -> bytes:
        received = b""
        while len(received) < _INT.size or len(received) < _INT.size + _INT.unpack(received[:4])[0]:
            part = self.socket.recv(_PIECE_BYTES)
            assert part, "the server has closed the connection"
            received += part
        return received[_INT.size :]


def _path(number: int, place: int) -> str:
    return f"/load/{number}/partition-{place % NODES:03d}"


def _request(kind: str, number: int, place: int) -> tuple[int, bytes]:
    """Return the type and the body of a request of a connection."""
    path = _path(number, place)
    if kind == "get":
        return Op.GET_DATA, watch_body(path, watch=False)
    if kind == "set":
        return Op.SET_DATA, set_data_body(path, STATE, -1)
    assert kind == "multi", kind
    paths = [_path(number, place * CHANGES + each) for each in range(CHANGES)]
    return Op.MULTI, multi_body([(Op.SET_DATA, set_data_body(each, STATE, -1)) for each in paths])


if __name__ == "__main__":
    main()
