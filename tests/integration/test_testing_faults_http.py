"""Faults over HTTP: `barnabas server start --test-control PORT`, for tests in any language."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from tests.kit.processes.broker_process import BrokerProcess, free_port


class Control:
    """One request a connection."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> tuple[int, Any]:
        text = body if isinstance(body, str | None) else json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, path, text, {"Content-Type": kind} if text else {})
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found

    def send(self, data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            return sock.makefile("rb").readline()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("control"))
    process.words = ("--test-control", str(free_port()))
    process.start()
    yield process
    assert process.stop() == 0


@pytest.fixture
def control(broker: BrokerProcess) -> Iterator[Control]:
    made = Control(int(broker.words[1]))
    yield made
    assert made.ask("DELETE", "/faults") == (200, {"faults": []})


def sent(broker: BrokerProcess, value: bytes, **more: object) -> list[Any]:
    outcomes: list[Any] = []
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "enable.idempotence": True,
            "retry.backoff.ms": 10,
            "log_level": 0,
            **more,
        }
    )
    producer.produce("orders", value, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(20) == 0
    return outcomes


def test_tk_4_a_rule_is_added_hit_awaited_and_removed(
    broker: BrokerProcess, control: Control
) -> None:
    rule = {"api": "Produce", "topic": "orders", "error": "NOT_LEADER_OR_FOLLOWER", "count": 2}
    status, added = control.ask("POST", "/faults", rule)
    path = f"/faults/{added['id']}"
    assert (status, added["rule"], added["hits"]) == (201, rule, 0)
    waiting: list[tuple[int, Any]] = []
    waiter = threading.Thread(
        target=lambda: waiting.append(control.ask("GET", f"{path}?hits=2&timeout_ms=20000"))
    )
    waiter.start()
    assert sent(broker, b"one") == [None]
    waiter.join(20)
    assert waiting == [(200, {**added, "hits": 2, "spent": True})]
    assert control.ask("GET", "/faults") == (200, {"faults": [waiting[0][1]]})
    assert control.ask("GET", f"{path}?hits=3&timeout_ms=10")[0] == 408
    assert control.ask("DELETE", path)[0] == 200
    assert control.ask("GET", path)[0] == 404


def test_tk_4_disk_and_clock_are_spoilt_and_mended(broker: BrokerProcess, control: Control) -> None:
    assert control.ask("POST", "/disk", {"delay_ms": 20}) == (201, {"delay_ms": 20})
    assert control.ask("POST", "/clock", {"offset_ms": -5000, "frozen": True})[0] == 201
    assert sent(broker, b"two") == [None]
    assert control.ask("DELETE", "/disk") == (200, {})
    assert control.ask("DELETE", "/clock") == (200, {})


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("POST", "/faults", "{", 400, "is not JSON"),
        ("POST", "/faults", "[" * 30_000, 400, "is not JSON"),
        ("POST", "/faults", [1], 400, "must be a JSON object"),
        ("POST", "/faults", {"api": "Prodce", "cut": True}, 400, "did you mean Produce?"),
        ("POST", "/faults", {"api": "Produce", "cut": [1]}, 400, "must be strings, numbers"),
        ("POST", "/faults", {"api": "Produce", "cutt": True}, 400, "did you mean cut?"),
        ("POST", "/faults", {"api": "x" * 70_000}, 413, "longer than 65536 bytes"),
        ("POST", "/disk", {"ful": True}, 400, "/disk takes full"),
        ("POST", "/clock", {}, 400, "does nothing"),
        ("GET", "/faults/99?hits=x", None, 404, "no fault '99'"),
        ("GET", "/nothing", None, 404, "the paths are /faults"),
        ("PUT", "/faults", None, 405, "not one of GET, POST, DELETE"),
    ],
)
def test_tk_4_a_wrong_request_is_answered_with_a_sentence(
    control: Control, method: str, path: str, body: object, status: int, reason: str
) -> None:
    answered, body = control.ask(method, path, body)
    assert answered == status
    assert isinstance(body, dict) and reason in body["error"]


def test_tk_4_what_is_no_request_or_comes_from_a_browser_is_refused(control: Control) -> None:
    assert control.ask("POST", "/faults", {"api": "Produce", "cut": True}, "text/plain")[0] == 415
    assert control.send(b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")
    assert control.send(b"GET /faults HTT").startswith(b"HTTP/1.1 400 ")
    assert control.send(b"GET /" + b"x" * 9000).startswith(b"HTTP/1.1 431 ")


def test_tk_4_it_is_off_by_default_and_warns_when_it_is_on(
    broker: BrokerProcess, tmp_path: Path
) -> None:
    assert "without authentication: use this only in tests" in broker.log.read_text()
    taken = BrokerProcess(tmp_path)
    taken.words = broker.words
    assert f"--test-control {broker.words[1]}: the port cannot be bound" in taken.refuse()


def test_tk_4_a_stop_waits_for_nobody_who_waits_for_hits(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path)
    broker.words = ("--test-control", str(free_port()))
    broker.start()
    control = Control(int(broker.words[1]))
    assert control.ask("POST", "/faults", {"api": "Produce", "cut": True})[0] == 201
    with socket.create_connection(("127.0.0.1", control.port), timeout=20) as waiting:
        waiting.sendall(b"GET /faults/1?hits=1&timeout_ms=600000 HTTP/1.1\r\n\r\n")
        assert control.ask("GET", "/faults")[0] == 200
        assert broker.stop() == 0
        with contextlib.suppress(ConnectionResetError):
            assert waiting.recv(1) == b""
    assert "Traceback" not in broker.log.read_text()
