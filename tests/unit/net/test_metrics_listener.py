"""Metrics and probes over real sockets: answered, refused, or cut off in time."""

from __future__ import annotations

import asyncio
import http.client
import socket
import time
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil
import pytest
import uvloop

from barnabas import Broker, Cluster
from barnabas.errors import ConfigError
from barnabas.net.metrics_listener import (
    MOST_CONNECTIONS,
    MOST_HEAD_BYTES,
    MetricsListener,
)
from tests.kit.processes.broker_process import free_port
from tests.kit.raw_client import PATIENCE_S
from tests.kit.waiting import until

PAGE = b"# TYPE m gauge\nm 1.0\n"
SHORT_S = 0.5


def rendered(page: bytes) -> Callable[[], Awaitable[bytes]]:
    async def render() -> bytes:
        await asyncio.sleep(0)
        return page

    return render


def ready() -> str:
    return ""


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def play(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Runs a scene beside a listener, on either loop."""

    def run(
        scene: Callable[[MetricsListener], Awaitable[None]],
        longest_s: float = PATIENCE_S,
        page: bytes = PAGE,
    ) -> None:
        async def whole() -> None:
            listener = MetricsListener(rendered(page), ready, longest_s)
            await listener.bind("127.0.0.1", 0)
            await listener.start()
            try:
                await asyncio.wait_for(scene(listener), 2 * PATIENCE_S)
            finally:
                listener.close()

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(whole())

    return run


async def said(listener: MetricsListener, request: bytes, *, hangs_up: bool = False) -> bytes:
    """All that comes back until the other end hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    try:
        writer.write(request)
        if hangs_up:
            writer.write_eof()
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    finally:
        writer.close()


def status(answer: bytes) -> int:
    protocol, code, _ = answer.split(b" ", 2)
    assert protocol == b"HTTP/1.1"
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"Connection: close" in head
    return int(code)


def test_the_page_is_answered_once(play: Callable[..., None]) -> None:
    """RE-14"""

    async def scene(listener: MetricsListener) -> None:
        for request in (
            b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n",
            b"GET /metrics HTTP/1.0\r\n\r\n",
            b"GET /metrics?name=x HTTP/1.1\n\n",
            b"GET http://here:9404/metrics HTTP/1.1\r\n\r\n",
            b"GET /metrics HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n",
        ):
            for hangs_up in (False, True):
                answer = await said(listener, request, hangs_up=hangs_up)
                assert status(answer) == 200, request
                assert answer.endswith(b"\r\n\r\n" + PAGE)
                assert b"Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n" in answer
        await until(lambda: not listener.connections)

    play(scene)


def test_one_request_is_answered_and_the_next_is_not(play: Callable[..., None]) -> None:
    async def scene(listener: MetricsListener) -> None:
        asked: list[int] = []

        async def page() -> bytes:
            asked.append(1)
            return PAGE

        listener.page = page
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert status(await asyncio.wait_for(reader.read(), PATIENCE_S)) == 200
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        writer.write_eof()
        await until(lambda: not listener.connections)
        assert asked == [1]
        writer.close()

    play(scene)


def test_a_request_may_come_byte_by_byte(play: Callable[..., None]) -> None:
    async def scene(listener: MetricsListener) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n":
            writer.write(bytes([byte]))
            await asyncio.sleep(0.001)
        assert status(await reader.read()) == 200
        writer.close()

    play(scene)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /metrics/ HTTP/1.1\r\n\r\n", 404),
        (b"GET /../metrics HTTP/1.1\r\n\r\n", 404),
        (b"GET //host/metrics HTTP/1.1\r\n\r\n", 404),
        (b"POST /elsewhere HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody", 405),
        (b"GET /healthz/ HTTP/1.1\r\n\r\n", 404),
        (b"HEAD /ready HTTP/1.1\r\n\r\n", 404),
        (b"PUT /readyz HTTP/1.1\r\n\r\n", 405),
        (b"get /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /metrics HTTP/2.0\r\n\r\n", 400),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET  /metrics HTTP/1.1\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1 and more\r\n\r\n", 400),
        (b"GET /m\xffetrics HTTP/1.1\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # as TLS begins
        (b"\x00\x00\x00\x14\x00\x12\x00\x03\x00\x00\x00\x01\x00\x03raw", 400),  # a Kafka client
        (b"A" * (MOST_HEAD_BYTES + 1), 431),
        (b"GET /metrics HTTP/1.1\r\nX: " + b"x" * MOST_HEAD_BYTES, 431),
        (b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * (1 << 18), 431),
    ],
)
def test_anything_else_is_refused(play: Callable[..., None], request_: bytes, code: int) -> None:
    """Also in the middle of a head without an end, of which nothing is kept."""

    async def scene(listener: MetricsListener) -> None:
        answer = await said(listener, request_)
        assert answer.startswith(b"HTTP/1.1 %d " % code)
        assert request_.startswith(b"HEAD") or status(answer) == code
        assert (b"Allow: GET, HEAD\r\n" in answer) == (code == 405)
        assert PAGE not in answer
        assert status(await said(listener, b"GET /metrics HTTP/1.1\r\n\r\n")) == 200

    play(scene)


def test_probes_are_answered(play: Callable[..., None]) -> None:
    """UX-8: alive as long as it answers, ready when it says so, and else why it is not."""

    async def scene(listener: MetricsListener) -> None:
        async def asked(path: bytes, method: bytes = b"GET") -> tuple[bytes, bytes, bytes]:
            answer = await said(listener, b"%s %s HTTP/1.1\r\nHost: here\r\n\r\n" % (method, path))
            head, _, body = answer.partition(b"\r\n\r\n")
            length = head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
            return head.partition(b" ")[2].partition(b"\r\n")[0], length, body

        assert await asked(b"/healthz") == (b"200 OK", b"3", b"ok\n")
        assert await asked(b"/readyz?verbose") == (b"200 OK", b"6", b"ready\n")
        listener.unready = lambda: "loading logs"
        assert await asked(b"/healthz") == (b"200 OK", b"3", b"ok\n")
        reason = b"not ready: loading logs\n"
        length = str(len(reason)).encode()
        assert await asked(b"/readyz") == (b"503 Service Unavailable", length, reason)
        # The head alone, with the length that the body would have.
        assert await asked(b"/readyz", b"HEAD") == (b"503 Service Unavailable", length, b"")
        assert await asked(b"/healthz", b"HEAD") == (b"200 OK", b"3", b"")
        assert await asked(b"/metrics", b"HEAD") == (b"200 OK", str(len(PAGE)).encode(), b"")
        await until(lambda: not listener.connections)

    play(scene)


def test_who_hangs_up_halfway_is_forgotten(play: Callable[..., None]) -> None:
    async def scene(listener: MetricsListener) -> None:
        assert await said(listener, b"GET /metrics HT", hangs_up=True) == b""
        assert await said(listener, b"", hangs_up=True) == b""
        await until(lambda: not listener.connections)

    play(scene)


@pytest.mark.parametrize("request_", [b"", b"GET /metrics HTTP/1.1\r\nX: "])
def test_a_slow_client_is_cut_off(play: Callable[..., None], request_: bytes) -> None:
    """However often it sends another byte."""

    async def scene(listener: MetricsListener) -> None:
        began = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(request_)
        ended = asyncio.ensure_future(reader.read())
        while not ended.done():
            if request_:
                writer.write(b"x")
            await asyncio.sleep(0.02)
            assert time.monotonic() - began < PATIENCE_S
        assert ended.exception() is not None or ended.result() == b""
        assert time.monotonic() - began >= SHORT_S - 0.05
        writer.close()

    play(scene, SHORT_S)


def test_who_does_not_read_its_answer_is_cut_off(play: Callable[..., None]) -> None:
    async def scene(listener: MetricsListener) -> None:
        with socket.create_connection(("127.0.0.1", listener.port)) as client:
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            await until(lambda: listener.connections)
            await until(lambda: not listener.connections)

    play(scene, SHORT_S, page=bytes(64 << 20))


def test_no_more_connections_than_are_allowed(play: Callable[..., None]) -> None:
    async def scene(listener: MetricsListener) -> None:
        opened = [
            await asyncio.open_connection("127.0.0.1", listener.port)
            for _ in range(MOST_CONNECTIONS)
        ]
        await until(lambda: len(listener.connections) == MOST_CONNECTIONS)
        with suppress(ConnectionResetError):
            assert await said(listener, b"") == b""
        assert len(listener.connections) == MOST_CONNECTIONS
        opened.pop()[1].close()
        await until(lambda: len(listener.connections) < MOST_CONNECTIONS)
        assert status(await said(listener, b"GET /metrics HTTP/1.1\r\n\r\n")) == 200
        for _, writer in opened:
            writer.close()

    play(scene)


def test_closing_ends_it_all(play: Callable[..., None]) -> None:
    async def scene(listener: MetricsListener) -> None:
        port = listener.port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await until(lambda: listener.connections)
        listener.close()
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    play(scene)


# --- as a part of a broker -----------------------------------------------------------------------


def test_a_broker_serves_it_on_the_configured_port() -> None:
    """RE-14: at the first listener's host, for as long as the broker runs."""
    port = free_port()
    with Broker(config={"barnabas.metrics.port": str(port)}):
        with urllib.request.urlopen(
            f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE_S
        ) as answer:
            assert answer.status == 200
            assert (
                b"\nkafka_controller_kafkacontroller_activecontrollercount 1.0\n" in answer.read()
            )
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        connection.request("DELETE", "/metrics")
        assert connection.getresponse().status == 405
        connection.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


def listening_ports() -> set[int]:
    """Of this process."""
    connections = psutil.Process().net_connections(kind="tcp")
    return {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}


def test_a_broker_that_has_stopped_serves_it_no_more() -> None:
    """Be the loop another's, too."""
    port = free_port()
    with Cluster(1, config={"barnabas.metrics.port": str(port)}) as cluster:
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S).close()
        cluster.stop_broker(1)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


@pytest.mark.parametrize("config", [{}, {"barnabas.metrics.port": "0"}])
def test_a_broker_without_a_configured_port_serves_none(config: dict[str, str]) -> None:
    """RE-14: off by default."""
    before = listening_ports()
    with Broker(config=config) as broker:
        assert listening_ports() - before == {broker.port}


def test_a_port_that_cannot_be_had_ends_the_start(tmp_path: Path) -> None:
    """UX-4: before anything is made on the disk."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        broker = Broker(tmp_path / "data", config={"barnabas.metrics.port": str(port)})
        with pytest.raises(ConfigError, match=rf"127\.0\.0\.1:{port}: .*\(Address [a-z ]+\);"):
            broker.start()
    assert not (tmp_path / "data").exists()
    with pytest.raises(ConfigError, match=r"barnabas\.metrics\.port: '65536'"):
        Broker(config={"barnabas.metrics.port": "65536"}).start()


def test_of_two_that_want_one_port_the_second_is_refused(play: Callable[..., None]) -> None:
    """UX-4: though neither has begun to serve; a start that went on would end in a traceback."""

    async def scene(listener: MetricsListener) -> None:
        first = MetricsListener(rendered(PAGE), ready)
        second = MetricsListener(rendered(PAGE), ready)
        port = free_port()
        await first.bind("127.0.0.1", port)
        try:
            with pytest.raises(
                ConfigError, match=rf"metrics\.port: 127\.0\.0\.1:{port}: cannot bind"
            ):
                await second.bind("127.0.0.1", port)
        finally:
            first.close()

    play(scene)


@pytest.mark.parametrize("host", ["", "localhost", "127.0.0.1"])
def test_it_is_reached_at_the_host_that_it_is_bound_to(
    play: Callable[..., None], host: str
) -> None:
    """An empty host is every address, of both families."""

    async def scene(listener: MetricsListener) -> None:
        other = MetricsListener(rendered(PAGE), ready)
        await other.bind(host, 0)
        await other.start()
        try:
            assert status(await said(other, b"GET /metrics HTTP/1.1\r\n\r\n")) == 200
        finally:
            other.close()

    play(scene)


def test_each_broker_of_a_cluster_serves_its_own() -> None:
    """RE-14: broker 1 on the port that is given, the others on the next ones."""
    first = first_of_free_ports(3)
    with Cluster(brokers=3, config={"barnabas.metrics.port": str(first)}):
        for port in range(first, first + 3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                assert b"kafka_server_replicamanager_partitioncount" in answer.read()


def first_of_free_ports(count: int) -> int:
    """The first of several free ports in a row."""
    while True:
        first = free_port()
        with ExitStack() as stack, suppress(OSError, OverflowError):
            for port in range(first, first + count):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
