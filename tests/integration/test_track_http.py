"""BT-6: what `barnabas track serve` does with requests that no browser would send: they are refused
or closed, they take no memory, and others are answered meanwhile."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest

import barnabas
from benchmarks.accounting import resident_bytes
from tests.kit.processes.track_server import Tracking, event, records, tracking
from tests.kit.processes.web_console import PATIENCE_S

MOST_HEAD_BYTES = 16 << 10
MOST_SENT_BYTES = 64 << 20
MOST_GROWTH_BYTES = 16 << 20
HEAD = b"POST /v1/events HTTP/1.1\r\nHost: track.example\r\nContent-Type: text/plain\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with barnabas.Broker() as running:
        yield running.bootstrap_servers


@pytest.fixture(scope="module")
def server(servers: str) -> Iterator[Tracking]:
    with tracking(servers) as running:
        yield running


class Connection:
    """A connection that sends any bytes."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        self._file = self._socket.makefile("rb")

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()

    def send(self, *parts: bytes) -> None:
        for part in parts:
            self._socket.sendall(part)

    def answer(self) -> tuple[int, bytes]:
        """The status and the body of the next answer."""
        status = int(self._file.readline().split()[1])
        length = 0
        while (line := self._file.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return status, self._file.read(length)

    def flood(self, part: bytes) -> int:
        """Send a part again and again until the server closes. Returns how many bytes it took."""
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < MOST_SENT_BYTES:
                sent += self._socket.send(part)
        return sent

    def is_closed(self) -> bool:
        try:
            return self._file.read(1) == b""
        except ConnectionError:
            return True


@pytest.fixture
def connection(server: Tracking) -> Iterator[Connection]:
    with Connection(server.port) as running:
        yield running


def batch(*ids: str) -> bytes:
    return json.dumps({"events": [event(each) for each in ids]}).encode()


def whole(body: bytes, more: bytes = b"") -> bytes:
    return HEAD + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def chunks(body: bytes, size: int) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in parts) + b"0\r\n\r\n"


def test_a_body_may_arrive_in_any_parts(connection: Connection, servers: str) -> None:
    request = whole(batch("parts-event"))
    connection.send(*(request[at : at + 1] for at in range(len(request))))
    assert connection.answer()[0] == 200
    connection.send(CHUNKED, chunks(batch("chunked-event"), 1))
    assert connection.answer()[0] == 200
    continued = whole(batch("continued-event"), b"Expect: 100-continue\r\n")
    connection.send(continued)
    assert [connection.answer()[0] for _ in range(2)] == [100, 200]
    found = {dict(each.headers)["id"] for each in records(servers, "events")}
    assert {b"parts-event", b"chunked-event", b"continued-event"} <= found


def test_requests_may_follow_each_other_at_once(connection: Connection) -> None:
    connection.send(b"".join(whole(batch(f"pipelined-{each}")) for each in range(20)))
    assert [connection.answer()[0] for _ in range(20)] == [200] * 20


def test_an_upgrade_is_not_made_and_the_batch_is_stored(connection: Connection) -> None:
    """As Java's HTTP client and `curl --http2` ask for it."""
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    requests = [whole(batch(f"upgraded-{each}"), upgrade) for each in range(3)]
    connection.send(b"".join(requests))
    assert [connection.answer()[0] for _ in requests] == [200] * 3
    connection.send(*(requests[0][at : at + 7] for at in range(0, len(requests[0]), 7)))
    assert connection.answer()[0] == 200
    connection.send(CHUNKED.replace(HEAD, HEAD + upgrade), chunks(batch("after-the-upgrade"), 9))
    assert connection.answer()[0] == 200


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET /health\xffz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT track.example:443 HTTP/1.1\r\nHost: track.example\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip, identity\r\n\r\n{}",
        CHUNKED + b"z\r\n",
        CHUNKED + b"ffffffffffffffffff\r\n",
        HEAD + b"X: a\0b\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused(
    server: Tracking, connection: Connection, request_: bytes
) -> None:
    connection.send(request_)
    status, _ = connection.answer()
    assert status in (400, 404, 501) and connection.is_closed()
    assert server.ask("/healthz").status == 200


@pytest.mark.parametrize(
    ("first", "part"),
    [
        (b"GET /", b"a" * 8_192),
        (HEAD + b"X: ", b"a" * 8_192),
        (HEAD, b"X: a\r\n" * 1_000),
        (HEAD + b"a", b"a" * 8_192),
        (CHUNKED + b"1;", b"a" * 8_192),
        (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: a\r\n" * 1_000),
        (CHUNKED + b"2\r\n{}\r\n0\r\nX: ", b"a" * 8_192),
    ],
    ids=["address", "header", "headers", "name", "extension", "trailers", "trailer"],
)
def test_an_endless_head_is_closed_and_takes_no_memory(
    server: Tracking, connection: Connection, first: bytes, part: bytes
) -> None:
    before = resident_bytes(server.process.pid)
    connection.send(first)
    assert connection.flood(part) < MOST_SENT_BYTES
    assert resident_bytes(server.process.pid) - before < MOST_GROWTH_BYTES
    assert server.ask("/healthz").status == 200


def test_a_head_below_the_limit_is_read_in_parts(connection: Connection) -> None:
    cookie = b"Cookie: " + b"a" * (MOST_HEAD_BYTES - 1_000) + b"\r\n"
    request = whole(batch("cookie-event"), cookie)
    for _ in range(3):
        connection.send(*(request[at : at + 997] for at in range(0, len(request), 997)))
        assert connection.answer()[0] == 200


def test_a_body_above_the_limit_is_refused_in_chunks_too(
    server: Tracking, connection: Connection
) -> None:
    before = resident_bytes(server.process.pid)
    connection.send(CHUNKED, chunks(b" " * 300_000, 1_000))
    status, body = connection.answer()
    assert (status, json.loads(body)) == (
        413,
        {"error": "a batch may have at most 262,144 bytes"},
    )
    assert resident_bytes(server.process.pid) - before < MOST_GROWTH_BYTES


def test_slow_and_broken_senders_keep_nobody_waiting(server: Tracking) -> None:
    """BT-6: a body that does not arrive is answered with 408, and what it has is not stored."""
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(Connection(server.port)) for _ in range(20)]
        for each in slow:
            each.send(HEAD + b'Content-Length: 100\r\n\r\n{"events":')
        with Connection(server.port) as broken:
            broken.send(HEAD + b"Content-Length: 100\r\n\r\n{")
        assert server.send(event("unhindered-event")).status == 200
        assert {each.answer()[0] for each in slow} == {408}
    assert server.send(event("unhindered-event")).json["repeated"] == 1
